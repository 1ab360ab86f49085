// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

@Suite("A service under its manager")
struct ServiceTests {
    @Test("is READY when it accepts, shows signs of life, and says that it is STOPPING")
    func notifications() async throws {
        let manager = try NotifySocket()
        var configuration = BankConfiguration()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        configuration.environment["WATCHDOG_USEC"] = "400000"
        try await withBank(configuration, startsDaemon: false) { bank in
            async let started = bank.startDaemon()
            #expect(await manager.wait(for: "READY=1"))
            _ = try bank.connect()
            _ = try await started
            #expect(manager.lines.contains { $0.hasPrefix("STATUS=Serving bank") })
            #expect(await manager.wait(for: "WATCHDOG=1", times: 3))
            #expect(await bank.stopDaemon() == 0)
            #expect(manager.lines.contains("STOPPING=1"))
        }
    }

    @Test("takes up a changed configuration on SIGHUP and keeps its sessions")
    func reload() async throws {
        let manager = try NotifySocket()
        var configuration = BankConfiguration()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
            try await bank.expect("/new/x", status: 404)
            bank.configure {
                $0.listeners = """
                    address: 127.0.0.1:${PROXY_PORT}
                    upstream: bank
                    routes: [{ path: /new/, upstream: open, strip-prefix: true }]
                    """
                $0.upstreams = ["open:\n  url: http://127.0.0.1:${UPSTREAM_PORT}/open/"]
            }
            try bank.daemon.child.signal(SIGHUP)
            #expect(await manager.wait(for: "READY=1", times: 2))
            #expect(manager.lines.contains("RELOADING=1"))
            #expect(manager.lines.contains { $0.hasPrefix("MONOTONIC_USEC=") })
            try await bank.expect("/new/x", status: 200)
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("is ready with a login that nobody has asked for yet")
    func start() async throws {
        var configuration = BankConfiguration()
        let manager = try NotifySocket()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        try await withBank(configuration) { bank in
            #expect(await manager.wait(for: "READY=1", times: 1))
            #expect(bank.pinAnswers == 0)
        }
    }

    @Test("keeps the old configuration where the new one is wrong, and says so")
    func badReload() async throws {
        let manager = try NotifySocket()
        var configuration = BankConfiguration()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
            bank.folder.write("listeners: [ {\n", to: "countersign.yaml")
            try bank.daemon.child.signal(SIGHUP)
            #expect(await manager.wait(for: "READY=1", times: 2))
            #expect(manager.lines.contains { $0.hasPrefix("STATUS=Reload refused") })
            #expect(try await bank.daemon.waitForLog("reload refused"))
            try await bank.expect("/balance", status: 200)

            // Right in itself, but its port is taken: nothing of it may come into force.
            let taken = try RawListener()
            bank.configure { $0.listeners = "address: 127.0.0.1:\(taken.port)\nupstream: server" }
            try bank.daemon.child.signal(SIGHUP)
            #expect(await manager.wait(for: "STATUS=Reload refused", times: 2))
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("moves to another port on SIGHUP without cutting what is under way")
    func reloadMovesListener() async throws {
        try await withBank { bank in
            async let stream = bank.curl("/open/stream?lines=10&pause=50")
            _ = await bank.upstream.recorder.waitUntil { !$0.hits.isEmpty }
            let port = Ports.next()
            bank.configure { $0.listeners = "address: 127.0.0.1:\(port)\nupstream: bank" }
            try bank.daemon.child.signal(SIGHUP)
            #expect(try await bank.daemon.waitForLog("reloaded"))
            let moved = try await Curl.run(["http://127.0.0.1:\(port)/balance"], in: bank.folder)
            #expect(moved.status == 200)
            #expect(try await bank.curl("/balance").exit == 7)
            let answer = try await stream
            #expect(answer.exit == 0)
            #expect(answer.text.components("data: tick") == 10)
        }
    }

    @Test("finishes what is under way on SIGTERM, and lets nobody in any more")
    func drain() async throws {
        try await withBank { bank in
            let idle = try bank.connect()
            async let stream = bank.curl("/open/stream?lines=60&pause=50")
            _ = await bank.upstream.recorder.waitUntil { !$0.hits.isEmpty }
            let child = try bank.daemon.child
            child.signal(SIGTERM)
            #expect(await eventually { (try? bank.connect()) == nil })
            #expect(child.exitCode == nil)
            let answer = try await stream
            #expect(answer.exit == 0)
            #expect(answer.text.components("data: tick") == 60)
            #expect(await child.waitForExit() == 0)
            #expect(await offPool { idle.rest().end } != .open)
        }
    }

    @Test("serves the first request of a caller who had connected before SIGTERM, and closes a connection that is idle")
    func connectedBeforeDrain() async throws {
        try await withBank { bank in
            let request = "GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
            let child = try bank.daemon.child
            // Without a pause: a caller that sends nothing for a while after connecting is closed
            // (`WorkerLimits.silentTime`).
            let (idleEnd, answer, end) = try await offPool {
                let (fresh, used) = (try bank.connect(), try bank.connect())
                used.send(request)
                _ = used.response()
                child.signal(SIGTERM)
                let idleEnd = used.rest().end
                fresh.send(request)
                return (idleEnd, fresh.response(), fresh.rest().end)
            }
            #expect(idleEnd == .closed)
            #expect(answer?.status == 200)
            #expect(answer?.field("connection") == "close")
            #expect(end == .closed)
            #expect(await child.waitForExit() == 0)
        }
    }

    @Test("tells liveness, readiness and health apart")
    func health() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            for path in ["/livez", "/readyz", "/healthz"] {
                let answer = try await bank.admin(path)
                #expect(answer.status == 200, "\(path) \(answer.summary)")
            }
            try await bank.expect("/balance", code: "login-rejected")
            #expect(try await bank.admin("/livez").status == 200)
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 503)
            #expect(ready.text.contains("login-rejected") || ready.text.contains("rejected"))
            let verbose = try await bank.admin("/healthz?verbose")
            #expect(verbose.json?["latches"] != .array([]))
            #expect(!verbose.text.contains("9999"))
            #expect(bank.pinAnswers == 1)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Testing

@Suite("countersign reload")
struct ReloadCommandTests {
    @Test("waits until the new configuration is in force, and tells a refusal by its exit")
    func reload() async throws {
        try await withBank { bank in
            bank.configure {
                $0.listeners = """
                    address: 127.0.0.1:${PROXY_PORT}
                    upstream: bank
                    routes: [{ path: /new/, upstream: open, strip-prefix: true }]
                    """
                $0.upstreams = ["open:\n  url: http://127.0.0.1:${UPSTREAM_PORT}/open/"]
            }
            #expect(try await bank.countersign("reload").exit == 0)
            try await bank.expect("/new/x", status: 200)

            let file = bank.folder.write("listeners: [ {\n", to: "countersign.yaml")
            let refused = try await bank.countersign("reload", "--process", "\(bank.daemon.child.pid)")
            #expect(refused.exit == 78)
            #expect(
                refused.errors.hasPrefix("countersign: reload refused, the old configuration stays in force: \(file):"))
            try await bank.expect("/new/x", status: 200)
            // The file has errors, and status needs none of it.
            let status = try await bank.countersign("status")
            #expect(status.exit == 0 && status.output.contains("file      \(file)\n"), "\(status)")
            #expect(status.output.contains("reload    refused ") && status.output.contains("stays in force: \(file):"))
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 200 && ready.text.contains("\"configuration\":\"reload refused\""), "\(ready.text)")

            bank.configure { _ in }
            #expect(try await bank.countersign("reload").exit == 0)
        }
    }

    @Test("finds no daemon where none runs")
    func nobody() async throws {
        try await withBank { bank in
            let other = try await bank.countersign("reload", "--process", "\(getpid())")
            #expect(other.exit == 69)
            #expect(other.errors.contains("is not a running daemon"))
            #expect(await bank.stopDaemon() == 0)
            let none = try await bank.countersign("reload")
            #expect(none.exit == 69)
            #expect(none.errors.contains("no daemon runs with"))
            #expect(try await bank.countersign("reload", "--timeout", "soon").exit == 64)
        }
    }

    @Test("keeps no watchdog waiting, however often it is asked for")
    func watchdog() async throws {
        let manager = try NotifySocket()
        var configuration = BankConfiguration()
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        configuration.environment["WATCHDOG_USEC"] = "400000"
        try await withBank(configuration) { bank in
            let daemon = try bank.daemon.child
            // Less than a beat is between two of them, until two beats have come.
            let beats = await eventually {
                daemon.signal(SIGHUP)
                let lines = manager.lines
                return lines.count { $0 == "WATCHDOG=1" } >= 2 && lines.count { $0 == "RELOADING=1" } >= 5
            }
            #expect(beats)
        }
    }

    @Test("names the keys that take effect at the next start only")
    func keysOfStart() async throws {
        try await withBank { bank in
            bank.configure {
                $0.workers = 3
                $0.more.append("limits: { waiters: 7 }")
            }
            #expect(try await bank.countersign("reload").exit == 0)
            let log = try bank.daemon.log
            #expect(log.contains("takes effect at the next start"))
            #expect(log.contains(#""key":"workers""#))
            #expect(log.contains(#""key":"limits.waiters""#))
        }
    }
}

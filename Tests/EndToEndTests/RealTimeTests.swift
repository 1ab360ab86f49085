// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

/// Tests that let time pass because their subject is time itself; each suite gives its reason. No other test waits.
@Suite("Real time")
struct RealTimeTests {}

/// Waits for `time`.
func pause(for time: Duration) async throws { try await Task.sleep(for: time) }

extension RealTimeTests {
    /// Counts events over a time.
    @Suite("A daemon that has nothing to do")
    struct IdleTests {
        /// Returns how often the threads of a process went to sleep voluntarily, which is how often they were woken.
        private func sleeps(of process: pid_t) -> Int {
            entries(of: "/proc/\(process)/task").reduce(0) { sum, thread in
                let status = String(decoding: readFile("/proc/\(process)/task/\(thread)/status"), as: UTF8.self)
                let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
                return sum + (line?.split(separator: "\t").last.flatMap { Int($0) } ?? 0)
            }
        }

        @Test("wakes at most twice a second, all its threads together, also with sessions held and connections kept")
        func idle() async throws {
            var configuration = BankConfiguration()
            configuration.workers = 4
            configuration.bank = ["check: { path: /balance, every: 30s }"]
            try await withBank(configuration) { bank in
                let kept = try bank.connect()
                _ = await offPool {
                    kept.send("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    return kept.response()
                }
                try await bank.expect("/balance", status: 200)
                let process = try bank.daemon.child.pid
                // Waits until the resources of the last request are released (`WorkerLimits.quietTime`, `SpareMemory`).
                try await pause(for: .seconds(4))
                let before = sleeps(of: process)
                #expect(before > 10)
                try await pause(for: .seconds(10))
                let woken = sleeps(of: process) - before
                #expect(woken <= 20, "\(woken) times in 10 s")
                withExtendedLifetime(kept) {}
            }
        }
    }
}

extension RealTimeTests {
    /// Any moment is one that no event tells.
    @Suite("kill -9 at any moment, a hundred times")
    struct KillTests {
        @Test("leaves the latch closed: the rejected PIN is not sent a second time")
        func latch() async throws {
            var configuration = BankConfiguration()
            configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "99990000"
            try await withBank(configuration) { bank in
                try await bank.expect("/balance", code: "login-rejected")
                await bank.killDaemon()
                let callers = Task {
                    while !Task.isCancelled {
                        let caller = try? bank.connect()
                        _ = caller?.send("GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        try? await pause(for: .milliseconds(5))
                    }
                }
                for _ in 0..<100 {
                    // If another program starts the daemon, `startDaemon` does not wait until the daemon is ready.
                    try await bank.startDaemon(before: ["/usr/bin/env"])
                    try await pause(for: .milliseconds(Int.random(in: 0...90)))
                    await bank.killDaemon()
                }
                callers.cancel()
                await callers.value
                try await bank.startDaemon()
                try await bank.expect("/balance", code: "login-latched")
                #expect(bank.pinAnswers == 1)
            }
        }

        @Test("leaves the keyring whole, with the old value or the new, and with all that others have set")
        func keyring() async throws {
            try await Slots.run {
                let folder = try Folder()
                func command(_ words: String...) -> Child.Start {
                    Child.Start(
                        arguments: [Binary.path, "keyring", words[0], "--keyring", folder.path(of: "keyring")]
                            + words.dropFirst(),
                        environment: baseEnvironment(folder).merging(["COUNTERSIGN_KEYRING_PASSPHRASE": "words"]) {
                            $1
                        },
                        folder: folder.path, output: folder.path(of: "out"), errors: folder.path(of: "err"))
                }
                func run(_ words: String..., input: String = "") async throws -> (exit: Int32?, output: String) {
                    var start = command(words[0])
                    start.arguments += words.dropFirst()
                    start.input = folder.write(input, to: "in-\(words[0])")
                    start.output = folder.path(of: "out-\(words[0])")
                    unsafe unlink(start.output)
                    let code = try await Child.start(start).waitForExit()
                    return (code, folder.text(of: "out-\(words[0])"))
                }
                #expect(try await run("init").exit == 0)
                #expect(try await run("set", "victim", "pin", input: "0").exit == 0)
                for round in 1...100 {
                    var victim = command("set", "victim", "pin")
                    victim.input = folder.write("\(round)", to: "round")
                    let child = try await Child.start(victim)
                    // Another shell meanwhile, now and then.
                    if round.isMultiple(of: 25) {
                        #expect(try await run("set", "other\(round)", "pin", input: "\(round)").exit == 0)
                    } else {
                        try await pause(for: .milliseconds(Int.random(in: 0...110)))
                    }
                    child.signal(SIGKILL)
                    _ = await child.waitForExit()
                    guard round.isMultiple(of: 25) else { continue }
                    let value = try await run("get", "victim", "pin")
                    #expect(value.exit == 0)
                    #expect(Int(value.output).map { (0...round).contains($0) } == true, "\(value)")
                }
                let list = try await run("list").output.split(separator: "\n")
                #expect(list == ["other100 pin", "other25 pin", "other50 pin", "other75 pin", "victim pin"])
                // The remaining files of the killed ones are small, sealed, and removed with the first change ten
                // minutes later.
                for file in folder.files where file.contains(".tmp-") {
                    var status = stat()
                    #expect(unsafe stat(file, &status) == 0)
                    #expect(status.st_mode & 0o077 == 0)
                }
            }
        }
    }
}

extension RealTimeTests {
    /// A proof that a session works counts for two seconds.
    @Suite("HEAD and 304 some seconds after a session was proven")
    struct ConcealedPageTests {
        @Test("are those of the page, not of the login page", arguments: [FakeKind.webSEAL, .undertow])
        func ended(_ kind: FakeKind) async throws {
            try await withFake(kind) { bank, fake in
                try await fake.direct("/-fake/validators")
                let login = try await fake.direct("/app/guide.html").field("etag") ?? ""
                let whole = try await fake.direct("/open/guide.html")
                for options in [["-I"], ["-H", "If-None-Match: \(login)"], ["-r", "5-9", "-H", "If-Range: \(login)"]] {
                    try await bank.expect("/app/guide.html", status: 200)
                    try await fake.direct("/-fake/expire")
                    try await pause(for: .milliseconds(2_200))
                    let answer = try await Curl.run(options + [bank.url("/app/guide.html")], in: bank.folder)
                    #expect(answer.status == 200 && answer.field("etag") == whole.field("etag"), "\(answer.summary)")
                    #expect(answer.field("content-length") == "\(whole.body.count)", "\(options)")
                }
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
import Testing

@Suite("Secrets")
struct SecrecyTests {
    @Test("stand in no log, no reply, no status and no file of state, whatever happened")
    func nowhere() async throws {
        let pin = "73914682"
        var rules = FakeUpstream.rules
        rules.checks = [.pinCodeAttempts(pin: pin, SecurityCheck.Properties(maxAttempts: 9, success: 600, blocked: 60))]
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = pin
        try await withBank(configuration, rules: rules) { bank in
            let seen = Mutex<Set<String>>([])
            bank.upstream.override { request in
                if let value = request.field("authorization") { _ = seen.withLock { $0.insert(value) } }
                return nil
            }
            try await bank.expect("/balance?card=4929-known-query", status: 200)
            // Troubles of several kinds, each of which is logged.
            bank.upstream.faults.add(Fault(.cut(after: 300), at: .resource, times: 1))
            _ = try await bank.curl("/bytes?count=100000")
            bank.upstream.mobileFirst.expire(check: "PinCodeAttempts")
            bank.upstream.mobileFirst.revokeTokens()
            bank.upstream.faults.add(Fault(.garbage, at: .token, times: 1))
            _ = try await bank.curl("/balance")
            bank.upstream.mobileFirst.configure { $0.checks = [.pinCodeAttempts(pin: "0")] }
            bank.upstream.mobileFirst.expire(check: "PinCodeAttempts")
            bank.upstream.mobileFirst.revokeTokens()
            await bank.stopDaemon()
            try await bank.startDaemon()
            try await bank.expect("/balance", code: "login-rejected")
            _ = try await bank.admin("/status")
            await bank.stopDaemon()

            let tokens = seen.withLock { $0 }.compactMap { $0.split(separator: " ").last.map(String.init) }
            #expect(!tokens.isEmpty)
            let log = bank.folder.text(of: "daemon.log")
            #expect(log.contains("login succeeded"))
            for path in bank.folder.files where !path.hasSuffix("/countersign.yaml") {
                let text = String(decoding: readFile(path), as: UTF8.self)
                for secret in [pin, "4929-known-query"] + tokens {
                    #expect(!text.contains(secret), "\(path) holds a secret")
                }
            }
        }
    }

    @Test("lie in a state directory that nobody else may read")
    func modes() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            let files = bank.folder.files.filter { $0.hasPrefix(bank.folder.path(of: "state/")) }
            #expect(!files.isEmpty)
            for file in files {
                var status = stat()
                #expect(unsafe stat(file, &status) == 0)
                #expect(status.st_mode & 0o077 == 0, "\(file)")
            }
        }
    }

    @Test("are logged as JSON lines, each of them whole")
    func jsonLines() async throws {
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            await bank.stopDaemon()
            let lines = bank.folder.text(of: "daemon.log").split(separator: "\n")
            #expect(lines.count > 3)
            for line in lines {
                #expect(JSON(parsing: Array(line.utf8))?["message"]?.string != nil, "\(line)")
            }
        }
    }
}

@Suite("The memory of the daemon")
struct MemoryTests {
    private static let pin = "73914682"

    /// Runs a scenario with a bank whose PIN comes from a file, so that no environment contains it.
    private func withStoredPIN(_ scenario: (Bank) async throws -> Void) async throws {
        let credentials = try Folder()
        credentials.write(Self.pin, to: "bank-pin.pin")
        var rules = FakeUpstream.rules
        rules.checks = [
            .pinCodeAttempts(pin: Self.pin, SecurityCheck.Properties(maxAttempts: 9, success: 600, blocked: 60))
        ]
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        try await withBank(configuration, rules: rules) { bank in
            try await bank.expect("/balance", status: 200)
            try await scenario(bank)
        }
    }

    /// Lifts the limit on core dumps of a process, ends it as a crash does, and returns the dumps in the folder.
    private func crash(_ child: Child, in folder: Folder) async throws -> [String] {
        let lifted = try await Command.run(
            ["/usr/bin/prlimit", "--pid", "\(child.pid)", "--core=unlimited:unlimited"], in: folder)
        #expect(lifted.exit == 0, "\(lifted)")
        child.signal(SIGABRT)
        #expect(await child.waitForExit() == 128 + SIGABRT)
        return folder.files.filter { $0.split(separator: "/").last?.hasPrefix("core") == true }
    }

    @Test("is in no core dump, also where the limits allow one")
    func coreDump() async throws {
        try await withStoredPIN { bank in
            #expect(try await crash(bank.daemon.child, in: bank.folder) == [])
            await bank.killDaemon()
            // Another program would have left one, if this machine writes core dumps to the working folder.
            let pattern = String(decoding: readFile("/proc/sys/kernel/core_pattern"), as: UTF8.self)
            guard pattern.hasPrefix("core") else { return }
            let folder = try Folder()
            let sleeper = try await Child.start(
                Child.Start(
                    arguments: ["/usr/bin/sleep", "60"], environment: [:], folder: folder.path,
                    output: folder.path(of: "out"), errors: folder.path(of: "err")))
            _ = await eventually {
                String(decoding: readFile("/proc/\(sleeper.pid)/comm"), as: UTF8.self) == "sleep\n"
            }
            #expect(try await crash(sleeper, in: folder) != [])
        }
    }

    @Test("belongs to root, so that no other process of the user can read it; its environment names no secret")
    func closed() async throws {
        try await withStoredPIN { bank in
            let process = "/proc/\(try bank.daemon.child.pid)"
            #expect(!readFile("\(process)/environ").isEmpty)
            for file in ["environ", "cmdline", "status", "maps"] {
                #expect(!String(decoding: readFile("\(process)/\(file)"), as: UTF8.self).contains(Self.pin))
            }
            let regions = String(decoding: readFile("\(process)/smaps"), as: UTF8.self).split(separator: "\n")
            let flags = regions.filter { $0.hasPrefix("VmFlags:") }.map { $0.split(separator: " ") }
            #expect(flags.contains { $0.contains("dd") && $0.contains("lo") })
        }
    }
}

@Suite("The memory of the daemon, as root reads it", .enabled(if: getuid() == 0))
struct ReleasedMemoryTests {
    @Test("holds no heap of copies of a dropped session, nor does the environment a credential from elsewhere")
    func dropped() async throws {
        let credentials = try Folder()
        let secret = "kept-elsewhere-7f3a91"
        credentials.write("ann", to: "ann.username")
        credentials.write(secret, to: "ann.password")
        credentials.write("test", to: "reports.client-id")
        credentials.write("test", to: "reports.client-secret")
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.mobileFirst = []
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        configuration.challenges = [
            "name: ann\nupstream: server\nscheme: basic\ncredential: ann",
            """
            name: reports
            upstream: bank
            scheme: bearer
            credential: reports
            token: { grant: mobilefirst, scope: accessRestricted }
            """,
        ]
        try await withBank(configuration) { bank in
            let seen = Mutex<Set<String>>([])
            bank.upstream.override { request in
                // Not the credential of the token's client.
                if let value = request.field("authorization"), !request.path.hasSuffix("/token") {
                    _ = seen.withLock { $0.insert(value) }
                }
                guard request.path.hasPrefix("/basic/") else { return nil }
                guard request.field("authorization") != nil else {
                    return .text(401, "who?\n", fields: [("WWW-Authenticate", #"Basic realm="Demo""#)])
                }
                return .text(200, "welcome\n")
            }
            for _ in 0..<3 {
                try await bank.expect("/balance", status: 200)
                try await bank.expect("/basic/", status: 200)
            }
            let values = seen.withLock { $0 }.compactMap { $0.split(separator: " ").last.map(String.init) }
            let token = try #require(values.first { $0.hasPrefix("ey") })
            let basic = try #require(values.first { !$0.hasPrefix("ey") })
            let pid = try bank.daemon.child.pid
            // A secret in use is found: a search that finds nothing would prove nothing.
            let texts = ["Bearer \(token)", "Basic \(basic)", basic, secret]
            let before = try await countInMemory(of: pid, texts, in: bank.folder)
            #expect(before.count == 4 && before.prefix(3).allSatisfy { $0 > 0 }, "\(before)")
            #expect(!String(decoding: readFile("/proc/\(pid)/environ"), as: UTF8.self).contains(secret))

            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
            var after = before
            for round in 0..<20 where round == 0 || !isClean(after) {
                after = try await countInMemory(of: pid, texts, in: bank.folder)
            }
            #expect(isClean(after), "\(after)")
        }
    }
}

/// Returns true if no copy of the password's header field is left, and at most one of the token's and of the password itself: that of
/// the last transfer of a route.
private func isClean(_ counts: [Int]) -> Bool {
    counts[0] <= 1 && counts[1] == 0 && counts[2] == 0 && counts[3] <= 1
}

/// Returns the number of occurrences of each of `texts` in the memory of a process.
private func countInMemory(of pid: pid_t, _ texts: [String], in folder: Folder) async throws -> [Int] {
    let script =
        #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/Tests/Scripts/count-in-memory"
    let run = try await Command.run([script, "\(pid)"] + texts, in: folder)
    #expect(run.exit == 0, "\(run)")
    return run.output.split(separator: "\n").compactMap { Int($0) }
}

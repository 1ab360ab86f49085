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

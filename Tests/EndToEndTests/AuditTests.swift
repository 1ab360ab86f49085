// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("The audit record")
struct AuditTests {
    @Test("has who led to a login, by which request, for which challenge, and how it ended; once each")
    func record() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["audit: journal"]
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            let rejected = try await bank.expect("/balance", code: "login-rejected")
            for _ in 0..<20 { try await bank.expect("/balance", code: "login-latched") }
            await bank.stopDaemon()
            let records = records(in: bank)
            let outcomes = records.map { $0["outcome"]?.string ?? "" }
            // The server lets the client in before it asks for the PIN.
            #expect(outcomes == ["succeeded", "login-rejected", "login-latched", "login-latched"], "\(records)")
            for record in records.prefix(2) {
                #expect(record["by"] == "request" && record["caller_uid"] == .integer(Int64(getuid())))
                #expect(record["exchange_id"] == rejected.json?["exchange_id"])
            }
            #expect(records.allSatisfy { $0["challenge"] == "bank" })
            // Those that only looked at the latch are a number.
            #expect(records.last?["count"] == 19)
        }
    }

    @Test("has no uid of a session that is established at the start, and is left out where nobody wants it")
    func start() async throws {
        for (audit, label) in [("journal", "audit"), ("none", "login")] {
            var configuration = BankConfiguration.oauth("grant: client-credentials", more: ["login: at-start"])
            configuration.more = ["audit: \(audit)"]
            try await withBank(configuration) { bank in
                let daemon = try bank.daemon
                #expect(await daemon.waitForLog("login succeeded"))
                let lines = lines(in: bank).filter { $0["message"] == "login succeeded" }
                #expect(lines.count == 1 && lines.first?["logger"] == .string(label), "\(lines)")
                #expect(lines.first?["by"] == "at-start" && lines.first?["caller_uid"] == nil)
                #expect(lines.first?["credential"] == "api" && lines.first?["outcome"] == "succeeded")
            }
        }
    }

    @Test("fixed fields, which are looked up again and again, are one line")
    func injection() async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = ["name: key\nupstream: server\ninject: { X-Key: \"{key}\" }\ncredential: key"]
        configuration.environment = ["COUNTERSIGN_KEY__KEY": "s3cr3t"]
        try await withBank(configuration) { bank in
            for _ in 0..<3 {
                try await bank.expect("/open/x", status: 200)
                try await bank.expect("/open/x", status: 200)
                _ = try await bank.admin("/sessions/drop", "-X", "POST")
            }
            #expect(lines(in: bank).count { $0["message"] == "session ready without a login" } == 1)
            #expect(!lines(in: bank).contains { $0["message"] == "login succeeded" })
        }
    }

    private func lines(in bank: Bank) -> [JSON] {
        bank.folder.text(of: "daemon.log").split(separator: "\n").compactMap { JSON(parsing: Array($0.utf8)) }
    }

    private func records(in bank: Bank) -> [JSON] { lines(in: bank).filter { $0["logger"] == "audit" } }
}

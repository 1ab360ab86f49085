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
            // Requests that only met the latch are counted in one line.
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

    @Test("a refused request with a new nonce of Digest is no login, and leaves no line")
    func refusedResources() async throws {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.more = ["audit: journal"]
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = ["name: corp\nupstream: server\ncredential: corp\nscheme: digest"]
        configuration.environment = ["COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "demo"]
        try await withBank(configuration) { bank in
            bank.upstream.override { request in
                guard request.path.hasPrefix("/digest/no/") else { return nil }
                let nonce = "n\(UInt64.random(in: 0 ... .max))"
                return .text(
                    401, "no",
                    fields: [
                        (
                            "WWW-Authenticate",
                            "Digest realm=\"Demo\", qop=\"auth\", nonce=\"\(nonce)\", opaque=\"5ccc069c\", algorithm=SHA-256"
                        )
                    ]
                )
            }
            try await bank.expect("/digest/x", status: 200)
            let before = records(in: bank).count
            for number in 0..<40 { try await bank.expect("/digest/no/\(number)", status: 401) }
            try await bank.expect("/digest/x", status: 200)
            await bank.stopDaemon()
            let records = records(in: bank)
            #expect(records.count - before <= 1, "\(records)")
        }
    }

    private func lines(in bank: Bank) -> [JSON] {
        bank.folder.text(of: "daemon.log").split(separator: "\n").compactMap { JSON(parsing: Array($0.utf8)) }
    }

    private func records(in bank: Bank) -> [JSON] { lines(in: bank).filter { $0["logger"] == "audit" } }
}

@Suite("The access log")
struct AccessLogTests {
    private static func configuration(_ log: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.more = ["access-log: \(log)"]
        return configuration
    }

    private func lines(of bank: Bank, _ file: String, count: Int) async -> [String] {
        func read() -> [String] { bank.folder.text(of: file).split(separator: "\n").map(String.init) }
        #expect(await eventually { read().count >= count })
        return read()
    }

    @Test("has a line of JSON for each request, with who, what, where, how it ended and how long it took; no query")
    func json() async throws {
        try await withBank(Self.configuration("{ format: json, to: \"${FOLDER}/access.log\" }")) { bank in
            let balance = try await bank.expect("/balance?account=s3cr3t", "-A", "cu\"rl\\", status: 200)
            try await bank.expect("/balance", "-H", "Referer: http://x/?s3cr3t", status: 200)
            let refused = try await bank.expect("/x?s3cr3t", "-H", "Host: evil.example", code: "host-not-allowed")
            try await bank.expect("/open/bytes?count=300000", "-I", status: 200)
            try await bank.expect("/open/bytes?count=300000", status: 200)
            try await offPool {
                let connection = try bank.connect()
                connection.send("\u{1}\r\n\r\n")
                _ = connection.rest()
            }
            let lines = await lines(of: bank, "access.log", count: 6)
            let records = lines.compactMap { JSON(parsing: Array($0.utf8)) }
            try #require(records.count == 6, "\(lines)")
            #expect(!lines.joined().contains("s3cr3t"))
            #expect(records.map { $0["status"] } == [200, 200, 421, 200, 200, 400])
            #expect(records[0]["method"] == "GET" && records[0]["path"] == "/balance" && records[0]["version"] == "1.1")
            #expect(records[0]["upstream"] == "bank" && records[0]["challenge"] == "bank" && records[0]["code"] == nil)
            #expect(records[0]["bytes"] == .integer(Int64(balance.body.count)) && records[0]["aborted"] == false)
            #expect(records[0]["caller"] == "127.0.0.1" && records[0]["caller_uid"] == .integer(Int64(getuid())))
            #expect(records[0]["user_agent"] == "cu\"rl\\" && records[1]["referer"] == "http://x/")
            guard case .double(let whole)? = records[0]["seconds"],
                case .double(let upstream)? = records[0]["upstream_seconds"]
            else {
                Issue.record("no times: \(lines[0])")
                return
            }
            #expect(whole > 0 && whole < 20 && upstream <= whole)
            // The second one used the session, without waiting.
            #expect(records[1]["challenge"] == nil)
            #expect(records[2]["code"] == "host-not-allowed" && records[2]["upstream"] == nil)
            #expect(records[2]["exchange_id"] == refused.json?["exchange_id"])
            #expect(records[2]["bytes"] == .integer(Int64(refused.body.count)))
            #expect(records[3]["bytes"] == 0 && records[4]["bytes"] == 300_000)
            #expect(records[5]["method"] == nil && records[5]["code"] == "bad-request")
        }
    }

    @Test("has what a caller writes as one line that log readers know, and goes to standard output")
    func common() async throws {
        try await withBank(Self.configuration("common")) { bank in
            try await bank.expect("/open/a%22b", "-A", "evil\u{9B}31m \"- -", status: 200)
            try await bank.expect("/open/x", "-X", "TRACE", status: 405)
            let lines = await lines(of: bank, "daemon.out", count: 2)
            let head = "127.0.0.1 - \(getuid()) ["
            #expect(lines.allSatisfy { $0.hasPrefix(head) }, "\(lines)")
            #expect(lines.first?.contains(#""GET /open/a%22b HTTP/1.1" 200 "#) == true, "\(lines)")
            #expect(lines.first?.contains(#""-" "evil\u{9B}31m \"- -" host="#) == true, "\(lines)")
            #expect(
                lines.last?.contains(#"upstream=- code=method-not-allowed challenge=- seconds=0."#) == true, "\(lines)")
            let time = lines.first?.wholeMatch(of: #/.*\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\].*/#)
            #expect(time != nil, "\(lines)")
        }
    }

    @Test("has the query where it is asked for, and a response that broke off as such")
    func query() async throws {
        let log = "{ format: json, to: \"${FOLDER}/access.log\", query: true }"
        try await withBank(Self.configuration(log)) { bank in
            try await bank.expect("/open/x?a=b&c", status: 200)
            bank.upstream.faults.add(Fault(.cut(after: 5_000), at: .other, times: 1))
            _ = try await bank.curl("/open/bytes?count=100000")
            let records = await lines(of: bank, "access.log", count: 2).compactMap { JSON(parsing: Array($0.utf8)) }
            #expect(records.first?["query"] == "a=b&c" && records.first?["aborted"] == false)
            #expect(records.last?["aborted"] == true && records.last?["status"] == 200, "\(records)")
        }
    }

    @Test("is opened anew at a reload, which may also begin and end it, and keeps none where it cannot be opened")
    func reload() async throws {
        try await withBank { bank in
            try await bank.expect("/open/none", status: 200)
            bank.configure { $0.more = ["access-log: { format: common, to: \"${FOLDER}/access.log\" }"] }
            try await reload(bank, times: 1)
            try await bank.expect("/open/first", status: 200)
            _ = await lines(of: bank, "access.log", count: 1)
            let moved = unsafe rename(bank.folder.path(of: "access.log"), bank.folder.path(of: "access.log.1"))
            #expect(moved == 0)
            try await bank.expect("/open/second", status: 200)
            #expect(await lines(of: bank, "access.log.1", count: 2).count == 2)
            try await reload(bank, times: 2)
            try await bank.expect("/open/third", status: 200)
            let fresh = await lines(of: bank, "access.log", count: 1)
            #expect(fresh.count == 1 && fresh.first?.contains("/open/third") == true)
            // A file that cannot be opened is refused, and logging to the earlier one goes on.
            bank.configure { $0.more = ["access-log: { format: common, to: /nowhere/access.log }"] }
            try bank.daemon.child.signal(SIGHUP)
            let isRefused = try await bank.daemon.waitForLog("reload refused")
            #expect(isRefused)
            try await bank.expect("/open/fourth", status: 200)
            #expect(await lines(of: bank, "access.log", count: 2).count == 2)
            bank.configure { $0.more = [] }
            try await reload(bank, times: 3)
            try await bank.expect("/open/fifth", status: 200)
            await bank.stopDaemon()
            #expect(!bank.folder.text(of: "access.log").contains("fifth"))
        }
    }

    private func reload(_ bank: Bank, times: Int) async throws {
        try bank.daemon.child.signal(SIGHUP)
        let isReloaded = try await bank.daemon.waitForLog(#""reloaded""#, times: times)
        #expect(isReloaded)
    }
}

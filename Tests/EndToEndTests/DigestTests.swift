// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

/// Digest with a server that remembers every nonce and count, and reports violations of RFC 7616.
@Suite("Digest")
struct DigestTests {
    private static func configuration(password: String = "demo") -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.workers = 2
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = ["name: corp\nupstream: server\ncredential: corp\nscheme: digest\nrealm: Demo"]
        configuration.environment = ["COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": password]
        return configuration
    }

    @Test(
        "is answered by every algorithm, and the second request meets no challenge",
        arguments: ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess"], [true, false])
    func algorithms(name: String, hashesUserName: Bool) async throws {
        try await withBank(Self.configuration()) { bank in
            bank.upstream.digest.configure { rules in
                rules.algorithms = [name]
                rules.hashesUserName = hashesUserName
            }
            try await bank.expect("/digest/x?q=%22", "-d", "body", status: 200)
            try await bank.expect("/digest/y", status: 200)
            // By HEAD before the body, then by the two requests.
            #expect(bank.record.challenges["digest"] == 1 && bank.record.logins["digest"] == 3)
        }
    }

    @Test("to a server of RFC 2069 has no count")
    func oldest() async throws {
        try await withBank(Self.configuration()) { bank in
            bank.upstream.digest.configure { rules in
                rules.protection = nil
                rules.algorithms = ["MD5"]
            }
            for _ in 0..<2 { try await bank.expect("/digest/", status: 200) }
            #expect(bank.record.challenges["digest"] == 1)
        }
    }

    @Test(
        "with auth-int alone protects bodies, in memory, on disk and of unknown length, before and behind the challenge"
    )
    func integrity() async throws {
        var configuration = Self.configuration()
        configuration.upstreams = [
            "small:\n  url: 'http://127.0.0.1:${UPSTREAM_PORT}/'\n  replay: { memory: 64KiB, disk: 1MiB }"
        ]
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: small"
        configuration.challenges = ["name: corp\nupstream: small\ncredential: corp\nscheme: digest"]
        try await withBank(configuration) { bank in
            bank.upstream.digest.configure { $0.protection = "auth-int" }
            for (size, fields) in [(700_000, []), (5, []), (0, []), (300_000, ["-H", "Transfer-Encoding: chunked"])] {
                let file = bank.folder.write(String(repeating: "0123456789", count: size).prefix(size) + "", to: "body")
                let answer = try await Curl.run(
                    fields + ["--data-binary", "@\(file)", bank.url("/digest/a")], in: bank.folder)
                #expect(answer.status == 200, "\(answer.summary)")
            }
            try await bank.expect("/digest/", status: 200)
            #expect(bank.record.challenges["digest"] == 1)
            let file = bank.folder.write(String(repeating: "0123456789", count: 200_000), to: "body")
            for fields in [[], ["-H", "Transfer-Encoding: chunked"]] {
                let answer = try await Curl.run(
                    fields + ["--data-binary", "@\(file)", bank.url("/digest/a")], in: bank.folder)
                #expect(answer.code == "login-failed" && answer.detail.contains("auth-int"), "\(answer.summary)")
            }
            try await bank.expect("/digest/", status: 200)
        }
    }

    @Test("takes up every next nonce")
    func nextNonce() async throws {
        try await withBank(Self.configuration()) { bank in
            bank.upstream.digest.configure { rules in
                rules.givesNextNonce = true
                rules.nonceUses = 1
            }
            for _ in 0..<5 { try await bank.expect("/digest/", "-d", "body", status: 200) }
            #expect(bank.record.challenges["digest"] == 1 && bank.record.challenges["digest, stale"] == nil)
        }
    }

    @Test("50 posts at once over nonces that go stale all arrive, each once", arguments: [true, false])
    func stale(saysStale: Bool) async throws {
        try await withBank(Self.configuration()) { bank in
            bank.upstream.digest.configure { rules in
                rules.nonceUses = 40
                rules.saysStale = saysStale
            }
            try await bank.expect("/digest/", status: 200)
            let answers = try await bank.storm(connections: 50, requests: 2) { number in
                let body = "body \(number)"
                return "POST /digest/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            }
            #expect(answers.count == 100 && answers.allSatisfy { $0.status == 200 }, "\(answers.map(\.status))")
            let hits = bank.record.hits.filter { $0.method == "POST" }
            #expect(hits.count == 100 && Set(hits.map(\.digest)).count == 100)
            #expect((bank.record.challenges["digest, stale"] ?? 0) > 0)
        }
    }

    @Test("of a password that was right and is no longer ends with few attempts and a closed latch")
    func changed() async throws {
        try await withBank(Self.configuration()) { bank in
            try await bank.expect("/digest/", status: 200)
            bank.upstream.digest.configure { $0.password = "changed" }
            for _ in 0..<4 { _ = try await bank.curl("/digest/a") }
            for _ in 0..<4 { _ = try await bank.curl("/digest/b") }
            // A refusal in doubt goes to the caller for a while, at these addresses; elsewhere the latch answers.
            try await bank.expect("/digest/c", status: 503, code: "login-latched")
            #expect((bank.record.wrongAnswers["digest"] ?? 0) <= 4)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

/// Challenges as servers write them, from public reports about other clients.
@Suite("Challenges that depart from the grammar")
struct ServerChallengeTests {
    /// Creates the configuration of a server whose whole tree has one challenge.
    private func configuration(_ scheme: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: server"
        configuration.challenges = ["name: corp\nupstream: server\ncredential: corp\n\(scheme)"]
        configuration.environment = [
            "COUNTERSIGN_CORP__USERNAME": "ann", "COUNTERSIGN_CORP__PASSWORD": "demo", "COUNTERSIGN_CORP__TOKEN": "t1",
        ]
        return configuration
    }

    /// Lets the upstream refuse every request without `authorization` by these fields.
    private func guardTree(of bank: Bank, by authorization: String, _ challenges: [String]) {
        bank.upstream.override { request in
            guard request.field("authorization") != authorization else { return FakeResponse(204) }
            return FakeResponse(401, fields: challenges.map { ("WWW-Authenticate", $0) })
        }
    }

    @Test(
        "one fault in a challenge hides neither that challenge nor others",
        arguments: [
            [#"Basic realm="security" charset="UTF-8""#, #"Bearer realm="security""#, "ApiKey"],
            ["Basic realm=my realm"], ["Basic realm='Corp'"], ["Basic realm"],
            ["Bearer authorization_uri=https://a.example/, resource_id=https://b.example/", "Basic realm=\"r\""],
            [#"Digest realm="r"#, #"Basic realm="r""#], [#"Foo a=1, a=2, Basic realm="r", "#],
        ])
    func basic(challenges: [String]) async throws {
        try await withBank(configuration("scheme: basic")) { bank in
            guardTree(of: bank, by: "Basic YW5uOmRlbW8=", challenges)
            try await bank.expect("/a", status: 204)
        }
    }

    @Test(
        "a 401 to a request without a token is answered once, whatever its error says",
        arguments: [
            #"realm="oauth2-resource", error="unauthorized", error_description="Full authentication is required""#,
            #"error="invalid_request""#, #"error="insufficient_scope""#, #"error="missing_token""#,
            "error=invalid_token error_description=No token",
        ])
    func bearer(parameters: String) async throws {
        try await withBank(configuration("scheme: bearer\ntoken: { grant: static }")) { bank in
            guardTree(of: bank, by: "Bearer t1", ["Bearer \(parameters)"])
            try await bank.expect("/a", status: 204)
            // A fixed token that is refused is passed on, not tried again.
            guardTree(of: bank, by: "Bearer t2", ["Bearer \(parameters)"])
            let refused = try await bank.curl("/a")
            #expect(refused.status != 204, "\(refused.summary)")
        }
    }

    @Test("log, doctor and learn name what was not understood, and the log does so once")
    func unread() async throws {
        try await withBank(configuration("scheme: [digest, basic]")) { bank in
            guardTree(of: bank, by: "Basic YW5uOmRlbW8=", [#"Digest realm="r" nonce"#, #"Basic realm="r""#])
            // Nothing weaker goes out in place of the Digest that cannot be read.
            for _ in 0..<3 { try await bank.expect("/a", status: 401) }
            let log = try bank.daemon.log
            #expect(log.split(separator: "WWW-Authenticate not understood").count == 2, "\(log)")
            #expect(log.contains("a parameter without a value"))
            let doctor = try await bank.countersign("doctor", "server")
            #expect(
                doctor.output.contains("not understood: \\\"nonce\\\"")
                    || doctor.output.contains("not understood: \"nonce\""))
            let learn = try await Command.run(
                [Binary.path, "learn", "http://127.0.0.1:\(bank.upstream.port)/a", "--yes"],
                environment: ["COUNTERSIGN_UPSTREAM__USERNAME": "ann", "COUNTERSIGN_UPSTREAM__PASSWORD": "demo"],
                in: bank.folder)
            #expect(learn.errors.contains("not understood in its WWW-Authenticate: \"nonce\""), "\(learn)")
        }
    }
}

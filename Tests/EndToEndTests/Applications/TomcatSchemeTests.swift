// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("BASIC and DIGEST of a real Tomcat")
struct TomcatSchemeTests {
    private static func challenge(_ scheme: String) -> String {
        "  - { name: portal, upstream: tomcat, scheme: \(scheme), credential: ann }"
    }

    @Test("the caller is ann, and the second request costs no further round trip", arguments: ["basic", "digest"])
    func principal(scheme: String) async throws {
        try await withTomcat(Self.challenge(scheme)) { tomcat in
            let first = try await tomcat.curl("/\(scheme)/reports/7?year=2026", "-d", "x=1")
            #expect(first.status == 200 && first.json?["principal"]?.string == "ann", "\(first.summary)")
            let second = try await tomcat.curl("/\(scheme)/reports/8")
            #expect(second.json?["principal"]?.string == "ann", "\(second.summary)")
            // Basic goes along with the POST; for Digest a HEAD meets the challenge, and another tries the answer. Tomcat logs a
            // little after it has answered.
            let count = scheme == "basic" ? 2 : 4
            #expect(await eventually { tomcat.requests.count >= count } && tomcat.requests.count == count)
            #expect(tomcat.requests.count { $0.hasPrefix("POST") } == 1)
        }
    }

    @Test("50 POSTs at once arrive once each, also when Tomcat was started anew", arguments: ["basic", "digest"])
    func restarted(scheme: String) async throws {
        try await withTomcat(Self.challenge(scheme)) { tomcat in
            for round in ["a", "b"] {
                try await withThrowingTaskGroup(of: Curl.self) { group in
                    for number in 0..<50 {
                        group.addTask {
                            try await tomcat.curl("/\(scheme)/\(round)\(number)", "--data-binary", "body \(number)")
                        }
                    }
                    for try await answer in group {
                        #expect(answer.status == 200 && answer.json?["principal"]?.string == "ann", "\(answer.summary)")
                    }
                }
                let posts = tomcat.arrived.filter { $0.hasPrefix("POST /\(scheme)/\(round)") }
                #expect(posts.count == 50 && Set(posts).count == 50)
                // Its nonces are forgotten then.
                if round == "a" { try await tomcat.restart() }
            }
        }
    }

    @Test("a wrong password reaches Tomcat once", arguments: ["basic", "digest"])
    func wrongPassword(scheme: String) async throws {
        try await withTomcat(Self.challenge(scheme), password: "not-it") { tomcat in
            let first = try await tomcat.curl("/\(scheme)/", "-d", "x=1")
            #expect(first.status == 502 && first.code == "login-rejected", "\(first.summary)")
            for _ in 0..<3 { #expect(try await tomcat.curl("/\(scheme)/").code == "login-latched") }
            // The one answer, for Digest after a challenge, then no more than challenges.
            let count = scheme == "basic" ? 4 : 5
            #expect(await eventually { tomcat.requests.count >= count } && tomcat.requests.count == count)
            #expect(tomcat.arrived.isEmpty)
            #expect(try await tomcat.isUnlocked())
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("Sessions that a server binds to the User-Agent of their login")
struct UserAgentTests {
    private static let bound = FakeKind(script: "bound-agent", challenge: "gateway: form")

    /// Returns the `User-Agent` values of the requests that came, without repetitions.
    private func agents(_ fake: FakeServer, at path: String? = nil) -> Set<String> {
        let lines = fake.lines("agent").map { $0.split(separator: " ", maxSplits: 1).map(String.init) }
        return Set(lines.filter { path == nil || $0.first == path }.map { $0.count > 1 ? $0[1] : "" })
    }

    @Test(
        "callers of any program are served after one or two logins, and no right password is latched",
        arguments: [[], ["--keep"]], ["", "\nlogin: { when: at-start }", "\nprove-at: /me", "\nuser-agent: robot/1.0"])
    func callers(_ arguments: [String], _ lines: String) async throws {
        var kind = Self.bound
        kind.arguments = arguments
        kind.challenge += lines
        try await withFake(kind) { bank, fake in
            for agent in ["curl/8.5", "Prometheus/2.53", "", "Mozilla/5.0", "curl/8.5"] {
                let answer = try await bank.expect("/app", "-A", agent, status: 200)
                #expect(answer.json?["principal"]?.string == "ann", "\(agent): \(answer.summary)")
            }
            #expect(fake.logins.count <= 3 && fake.logins.allSatisfy { $0 == "ann ok" }, "\(fake.logins)")
            // From now on, requests cost nothing more.
            let before = fake.requests.count
            for agent in ["a/1", "b/2", ""] { try await bank.expect("/app/next", "-A", agent, status: 200) }
            #expect(fake.requests.count == before + 3)
            #expect(fake.arrived.allSatisfy { $0.hasPrefix("GET ") })
            let own = lines.contains("robot") ? "robot/1.0" : "countersign/"
            #expect(agents(fake, at: "/app/next").allSatisfy { $0.hasPrefix(own) }, "\(agents(fake))")
            let log = try bank.daemon.log.split(separator: "\n").filter { $0.contains("bound to the User-Agent") }
            #expect(log.count == 1, "\(log)")
            try await bank.expect("/app/post", "-d", "a=b", "-A", "c/3", status: 200)
            #expect(fake.arrived.count { $0.hasPrefix("POST /app/post") } == 1)
        }
    }

    @Test("many callers at once are served without a storm of logins")
    func storm() async throws {
        try await withFake(Self.bound) { bank, fake in
            let answers = try await bank.storm(connections: 20, requests: 3) { number in
                "GET /app/\(number) HTTP/1.1\r\nHost: localhost\r\nUser-Agent: agent/\(number)\r\n\r\n"
            }
            #expect(answers.allSatisfy { $0.status == 200 }, "\(answers.map(\.status))")
            #expect(fake.logins.count <= 4 && fake.logins.allSatisfy { $0 == "ann ok" }, "\(fake.logins)")
        }
    }

    @Test("a bound session stays so across restarts, and a new login of the same daemon carries it at once")
    func later() async throws {
        try await withFake(Self.bound) { bank, fake in
            try await bank.expect("/app", "-A", "a/1", status: 200)
            let logins = fake.logins.count
            try await fake.direct("/-fake/expire")
            try await bank.expect("/app", "-A", "b/2", status: 200)
            #expect(fake.logins.count == logins + 1)
            await bank.killDaemon()
            try await bank.startDaemon()
            try await bank.expect("/app", "-A", "c/3", status: 200)
            #expect(fake.logins.allSatisfy { $0 == "ann ok" })
        }
    }

    @Test("callers keep their own User-Agent where sessions are not bound, also after a page refuses everybody")
    func loose() async throws {
        try await withFake(Self.bound.with("--loose")) { bank, fake in
            try await bank.expect("/app", "-A", "a/1", status: 200)
            for _ in 0..<3 { try await bank.expect("/private", "-A", "a/1", status: 302) }
            try await bank.expect("/app/next", "-A", "b/2", status: 200)
            #expect(agents(fake, at: "/app/next") == ["b/2"])
            #expect(fake.logins == ["ann ok"], "\(fake.logins)")
            #expect(agents(fake, at: "/login").count == 1)
        }
    }

    @Test("a wrong password is sent once, and a request of the daemon's own always has a User-Agent")
    func own() async throws {
        try await withFake(Self.bound.with("--needs-agent")) { bank, fake in
            try await bank.expect("/app", "-A", "a/1", status: 200)
            #expect(!agents(fake).contains(""))
        }
        try await withFake(Self.bound, password: "wrong") { bank, fake in
            try await bank.expect("/app", "-A", "a/1", code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/app", "-A", "b/2", code: "login-latched") }
            #expect(fake.logins == ["ann wrong"])
        }
    }

    @Test(
        "a constant of `inject` or of a step is the whole login's",
        arguments: ["inject: { User-Agent: robot/2 }", "login: { headers: { User-Agent: robot/2 } }"])
    func constants(_ line: String) async throws {
        var kind = Self.bound
        kind.challenge += "\n\(line)\nprove-at: /me"
        try await withFake(kind) { bank, fake in
            try await bank.expect("/app", "-A", "a/1", status: 200)
            try await bank.expect("/app", "-A", "b/2", status: 200)
            #expect(agents(fake, at: "/login") == ["robot/2"])
            #expect(fake.logins.allSatisfy { $0 == "ann ok" } && fake.logins.count <= 3, "\(fake.logins)")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import Testing

/// The settings `host`, `caller-credentials` and `forwarded` of an upstream.
@Suite("Forwarding policy of an upstream")
struct ForwardingPolicyTests {
    /// Returns the fields of those names that reach the upstream, with its port as PORT.
    private func arriving(
        _ policy: ForwardingPolicy, _ request: String, named names: String..., injecting: [InjectedField] = []
    ) throws -> [String] {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            Session(fields: injecting)
        }
        let proxy = try TestProxy(
            .bank(port: upstream.port, forwarding: policy, logins: injecting.isEmpty ? [] : [login]))
        return try proxy.fetch(request).body.split(separator: "\r\n").map(String.init)
            .filter { line in names.contains { line.lowercased().hasPrefix("\($0):") } }
            .map { $0.replacing("\(upstream.port)", with: "PORT") }
    }

    // MARK: host

    @Test("by default Host is the upstream's, whatever the caller's is")
    func upstreamHost() throws {
        #expect(try arriving(ForwardingPolicy(), get("/"), named: "host") == ["Host: 127.0.0.1:PORT"])
    }

    @Test(
        "with host: pass Host is the caller's unchanged, and an absolute target's before that",
        arguments: [
            (get("/"), "localhost"), ("GET / HTTP/1.1\r\nHost: LocalHost:81\r\n\r\n", "LocalHost:81"),
            ("GET http://bank.localhost:9/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "bank.localhost:9"),
            ("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", "localhost"), ("GET / HTTP/1.0\r\n\r\n", "127.0.0.1:PORT"),
            (get("/", "Connection: host\r\n"), "127.0.0.1:PORT"),
        ])
    func passedHost(request: String, host: String) throws {
        #expect(try arriving(ForwardingPolicy(host: .pass), request, named: "host") == ["Host: \(host)"])
    }

    // MARK: forwarded

    private static let own =
        "Forwarded: for=10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\n"

    private func told(_ style: ForwardingPolicy.Caller, _ fields: String) throws -> [String] {
        try arriving(
            ForwardingPolicy(caller: style), get("/", fields), named: "forwarded", "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-host")
    }

    @Test("with forwarded: none no field is added, and the caller's pass")
    func untold() throws {
        #expect(try told(.none, "") == [])
        #expect(try told(.none, Self.own) == Self.own.split(separator: "\r\n").map(String.init))
    }

    @Test("Forwarded is one line, ours behind what is there, and not behind what would take it in")
    func forwarded() throws {
        let ours = "for=127.0.0.1;host=localhost;proto=http"
        #expect(try told(.forwarded, "") == ["Forwarded: \(ours)"])
        #expect(
            try told(.forwarded, Self.own) == [
                "X-Forwarded-For: 10.0.0.2", "X-Forwarded-Proto: https", "X-Forwarded-Host: h",
                "Forwarded: for=10.0.0.1, \(ours)",
            ])
        #expect(
            try told(.forwarded, "Forwarded: for=\"a\\\"b\"\r\nForwarded:\r\nForwarded: for=c, for=d\r\n")
                == ["Forwarded: for=\"a\\\"b\", for=c, for=d, \(ours)"])
        #expect(try told(.forwarded, "Forwarded: for=\"a\r\n") == ["Forwarded: \(ours)"])
        #expect(try told(.forwarded, "Forwarded: for=\"a\\\"\r\n") == ["Forwarded: \(ours)"])
        #expect(try told(.forwarded, "Forwarded: for=a\r\nConnection: forwarded\r\n") == ["Forwarded: \(ours)"])
    }

    @Test("X-Forwarded-For is one line with our address last; -Proto and -Host are ours")
    func xForwarded() throws {
        let ours = ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: localhost"]
        #expect(try told(.xForwarded, "") == ours)
        #expect(
            try told(.xForwarded, "Connection: X-Forwarded-For, x-forwarded-host\r\n\(Self.own)").dropFirst()
                == ours[...])
        #expect(
            try told(.xForwarded, "\(Self.own)X-Forwarded-For: 10.0.0.3\r\nX-Forwarded-Host: i\r\n") == [
                "Forwarded: for=10.0.0.1", "X-Forwarded-For: 10.0.0.2, 10.0.0.3, 127.0.0.1", ours[1], ours[2],
            ])
    }

    @Test("a request without a host has none in the forwarding fields, and an injected field of that name stays alone")
    func hostless() throws {
        for style in [ForwardingPolicy.Caller.forwarded, .xForwarded] {
            let told = try arriving(
                ForwardingPolicy(caller: style), "GET / HTTP/1.0\r\n\r\n", named: "forwarded", "x-forwarded-for",
                "x-forwarded-host", "x-forwarded-proto")
            #expect(
                told
                    == (style == .forwarded
                        ? ["Forwarded: for=127.0.0.1;proto=http"]
                        : ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http"]))
        }
        let field = InjectedField(name: try #require(HTTPField.Name("X-Forwarded-For")), value: Secret("us"))
        #expect(
            try arriving(
                ForwardingPolicy(caller: .xForwarded), get("/", "X-Forwarded-For: a\r\n"), named: "x-forwarded-for",
                injecting: [field]) == ["X-Forwarded-For: us"])
    }

    // MARK: caller-credentials

    private static let injected = [InjectedField(name: .authorization, value: Secret("Bearer ours"))]

    private func credentials(_ policy: ForwardingPolicy.CallerCredentials, _ fields: String) throws -> [String] {
        let key = InjectedField(name: try #require(HTTPField.Name("X-Api-Key")), value: Secret("ours"))
        return try arriving(
            ForwardingPolicy(callerCredentials: policy), get("/", fields), named: "authorization", "x-api-key",
            injecting: Self.injected + [key])
    }

    @Test("replace puts a session's Authorization in place of the caller's, keep leaves the caller's")
    func replaceOrKeep() throws {
        let own = "Authorization: Basic own\r\nX-Api-Key: own\r\n"
        let ours = ["Authorization: Bearer ours", "X-Api-Key: ours"]
        #expect(try credentials(.replace, own) == ours)
        #expect(try credentials(.keep, own) == ["Authorization: Basic own", "X-Api-Key: ours"])
        #expect(try credentials(.keep, "X-Api-Key: own\r\n") == ours)
        #expect(try credentials(.keep, "\(own)Connection: authorization\r\n") == ours)
        for policy in [ForwardingPolicy.CallerCredentials.replace, .keep] {
            #expect(
                try arriving(ForwardingPolicy(callerCredentials: policy), get("/", own), named: "authorization")
                    == ["Authorization: Basic own"])
        }
    }

    @Test("refuse answers 403 to a caller with an Authorization of its own, and to no other")
    func refuse() throws {
        #expect(try credentials(.refuse, "") == ["Authorization: Bearer ours", "X-Api-Key: ours"])
        let upstream = try AnsweringUpstream { _, _ in answer() }
        let proxy = try TestProxy(.bank(port: upstream.port, forwarding: ForwardingPolicy(callerCredentials: .refuse)))
        for fields in [
            "Authorization: Basic own\r\n", "Authorization:\r\n", "Authorization: x\r\nConnection: authorization\r\n",
        ] {
            let reply = try proxy.fetch(get("/", fields))
            #expect(reply.head.hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
            #expect(reply.body.contains(#""code":"caller-not-allowed""#))
            #expect(reply.body.contains("caller-credentials: refuse"))
            #expect(!reply.body.contains("Basic"))
        }
        #expect(upstream.requests == 0)
    }

    @Test("a caller that keeps its credentials gets the answer unchanged, and no login begins")
    func keptAnswers() throws {
        let upstream = try AnsweringUpstream { head, _ in
            let isOwn = head.contains("Authorization: Bearer own")
            return answer(
                isOwn && head.hasPrefix("GET /good ") || head.contains("Bearer ours") ? "200 OK" : "401 Unauthorized",
                "",
                "WWW-Authenticate: Bearer\r\nAuthentication-Info: for=caller\r\n")
        }
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in Session(fields: Self.injected) }
        let proxy = try TestProxy(
            .bank(port: upstream.port, forwarding: ForwardingPolicy(callerCredentials: .keep), logins: [login]))
        let own = "Authorization: Bearer own\r\n"
        #expect(try proxy.fetch(get("/bad", own)).head.hasPrefix("HTTP/1.1 401 Unauthorized\r\n"))
        let good = try proxy.fetch(get("/good", own)).head
        #expect(good.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(good.contains("WWW-Authenticate: Bearer\r\nAuthentication-Info: for=caller\r\n"))
        #expect(proxy.log.count == 0)
        // Without its own credentials, the same caller is logged in as usual.
        let ours = try proxy.fetch(get("/bad")).head
        #expect(ours.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(!ours.contains("Authentication-Info"))
        #expect(proxy.log.count == 1)
        #expect(try proxy.fetch(get("/bad", own)).head.hasPrefix("HTTP/1.1 401 Unauthorized\r\n"))
    }

    @Test("with replace, authentication fields of an answer to the session's credentials do not reach the caller")
    func authenticationOfWhom() throws {
        let said = "WWW-Authenticate: Bearer\r\nAuthentication-Info: rspauth=x\r\n"
        let upstream = try AnsweringUpstream { head, _ in
            let isRefused = head.hasPrefix("GET /closed ") && !head.contains("Bearer ours")
            return isRefused ? challenge : answer("200 OK", "", said)
        }
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in Session(fields: Self.injected) }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        // There is no session yet: the caller's own credentials are sent, so the answer's fields are for the caller.
        try caller.send(get("/open", "Authorization: Digest own\r\n"))
        #expect(try caller.message().head.contains(said))
        try caller.send(get("/open"))
        #expect(try caller.message().head.contains(said))
        #expect(proxy.log.count == 0)
        // On the same connection, the session's credentials are sent once there is one.
        for path in ["/closed", "/open"] {
            try caller.send(get(path, "Authorization: Digest own\r\n"))
            let head = try caller.message().head
            #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(!head.contains("WWW-Authenticate") && !head.contains("Authentication-Info"))
        }
        #expect(proxy.log.count == 1)
    }
}

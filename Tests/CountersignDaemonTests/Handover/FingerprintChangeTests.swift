// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Settings
import Testing

@testable import CountersignDaemon

@Suite("Changes of the configuration and fingerprints of logins")
struct FingerprintChangeTests {
    private func text(_ configuration: String) throws -> [String: String] {
        let (settings, problems) = Settings.parse(Array(configuration.utf8), file: "f", environment: [:])
        let loaded = try #require(settings, "\(problems)\n\(configuration)")
        let bank = try #require(loaded.upstream(named: "bank"))
        let logins = LoginSite(bank.protected, loaded.challenges, LoginMaterial()).authenticators().logins.all
        return Dictionary(
            logins.filter { $0.trigger.detector != nil }.map {
                ($0.name, $0.terms)
            }, uniquingKeysWith: { $1 })
    }

    private static let configuration = """
        listeners: [{ address: "127.0.0.1:8080", upstream: bank }]
        upstreams:
          bank:
            url: https://bank.example.com/api/
            timeouts: { connect: 5s }
            mobilefirst: { application: com.sample, platform: ios, version: "1.0", scope: a }
          other: { url: "https://other.example.com/" }
        challenges:
          - name: pin
            upstream: bank
            security-check: Pin
            credential: p
            answer: { pin: "{pin}" }
            keep-attempts: 1
            logout: false
          - name: page
            at: https://bank.example.com/app/*
            gateway: none
            credential: ann
            detect: { status: 401 }
            success: { cookie: sid }
            failed: { status: 403, because: locked }
            login: { when: on-demand, page: /login, url: /in, method: POST, parameters: { u: "{username}" }, fields: none, body: form, timeout: 10s }
            logout: { url: /out }
            cookies: { pass: [csrf] }
            inject: { X-A: b }
            retry-rejected: never
            prove-at: /me
          - name: api
            upstream: bank
            scheme: bearer
            credential: c
            realm: R
            login: on-demand
            token: { grant: client-credentials, url: "https://id.example.com/t", revocation: "https://id.example.com/r", scope: x, audience: y, parameters: { z: "1" }, client-auth: basic, field: X-B, prefix: P }
        limits: { callers: 64 }
        log: { level: info }
        """

    @Test("a helper is part of the fingerprint, and a fingerprint without one is unchanged")
    func helpers() throws {
        let gateway = Self.configuration.replacing("success: { cookie: sid }", with: "")
            .replacing("failed: { status: 403, because: locked }", with: "")
        func page(_ login: String) throws -> String? {
            let lines = gateway.split(separator: "\n").map { line in
                line.contains("login: { when:") ? "    login: \(login)" : String(line)
            }
            return try text(lines.joined(separator: "\n"))["page"]
        }
        let one = try page("{ exec: [/h, -x] }")
        #expect(one?.contains("login.exec=/h\nlogin.exec=-x\n") == true, "\(one ?? "")")
        #expect(try one == page("{ exec: [/h, -x], timeout: 9s, when: at-start }"))
        #expect(try one != page("{ exec: [/h] }") && one != page("{ socket: /h }"))
        #expect(try page("{ socket: /h }") != page("{ socket: /h, page: /login }"))
        #expect(try texts(replacing: "X-A: b", with: "X-A: b")["page"]?.contains("exec") == false)
    }

    private func texts(replacing old: String, with new: String) throws -> [String: String] {
        #expect(Self.configuration.contains(old), "\(old)")
        return try text(Self.configuration.replacing(old, with: new))
    }

    @Test(
        "a setting that changes what a login sends changes the fingerprint of only that login",
        arguments: [
            ("bank", "application: com.sample", "application: com.other"), ("bank", "platform: ios", "platform: web"),
            ("bank", #"version: "1.0""#, #"version: "1.1""#), ("bank", "scope: a }", "scope: a b }"),
            ("bank", "scope: a }", #"scope: a, api: "https://mfp.example.com/mfp/api" }"#),
            ("bank", "security-check: Pin", "security-check: Tan"), ("bank", "credential: p", "credential: q"),
            ("bank", #"{ pin: "{pin}" }"#, #"{ pin: "{tan}" }"#),
            ("page", "https://bank.example.com/", "https://bank.example.org/"),
            ("page", "gateway: none", "gateway: webseal"), ("page", "credential: ann", "credential: bob"),
            ("page", "page: /login", "page: /sign-in"), ("page", "url: /in", "url: /sign-in"),
            ("page", "method: POST", "method: PUT"), ("page", "u: \"{username}\"", "v: \"{username}\""),
            ("page", "u: \"{username}\"", "u: \"{user}\""), ("page", "fields: none", "fields: hidden"),
            ("page", "body: form", "body: json"), ("page", "pass: [csrf]", "pass: []"), ("page", "X-A: b", "X-A: c"),
            ("page", "body: form", "body: form, headers: { X-C: d }"),
            ("api", "scheme: bearer", "scheme: [bearer, basic]"), ("api", "credential: c", "credential: d"),
            ("api", "realm: R", "realm: S"), ("api", "client-credentials", "password"),
            ("api", "id.example.com/t", "id.example.com/u"), ("api", "scope: x", "scope: w x"),
            ("api", "audience: y", "audience: x"), ("api", "{ z: \"1\" }", "{ z: \"2\" }"),
            ("api", "client-auth: basic", "client-auth: body"), ("api", "field: X-B", "field: X-C"),
            ("api", "prefix: P", "prefix: Q"),
        ])
    func changed(_ login: String, _ old: String, _ new: String) throws {
        let (before, after) = (try text(Self.configuration), try texts(replacing: old, with: new))
        #expect(before[login] != nil && after[login] != nil && before[login] != after[login])
        // The origin is all logins'.
        guard !new.contains("example.org") else { return }
        for name in ["bank", "page", "api"] where name != login { #expect(before[name] == after[name]) }
    }

    @Test(
        "a setting that does not change what a login sends changes no fingerprint",
        arguments: [
            ("keep-attempts: 1", "keep-attempts: 2"), ("logout: false", "logout: true"), ("name: pin", "name: tan"),
            ("status: 401", "status: 403"), ("cookie: sid", "cookie: session"),
            ("because: locked", "because: unavailable"),
            ("when: on-demand", "when: at-start"), ("timeout: 10s", "timeout: 3s"), ("url: /out", "url: /bye"),
            ("retry-rejected: never", "retry-rejected: 5m"), ("prove-at: /me", "prove-at: /you"),
            ("    prove-at: /me\n", ""), ("login: on-demand", "login: at-start"),
            (", revocation: \"https://id.example.com/r\"", ""),
            ("connect: 5s", "connect: 6s"), ("callers: 64", "callers: 65"), ("level: info", "level: debug"),
            ("/app/*", "/*"), ("com/api/", "com/"), ("    timeouts:", "    http: 2\n    timeouts:"),
            ("127.0.0.1:8080", "127.0.0.1:8081"),
            ("- name: api", "- { name: new, upstream: other, scheme: basic, credential: x }\n  - name: api"),
        ])
    func same(_ old: String, _ new: String) throws {
        #expect(try texts(replacing: old, with: new) == text(Self.configuration))
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import InventedKind
import Secrets
import Settings
import TestSupport
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
        // The origin is part of every login's fingerprint.
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

@Suite("Sessions of a kind that is added in a folder of its own")
struct InventedKindTests {
    private func authenticator(latitude: Int = 51) throws -> Authenticator {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: garden }]
            upstreams: { garden: { url: "http://127.0.0.1:1/" } }
            challenges:
              - { name: sun, upstream: garden, sundial: garden, latitude: \(latitude), credential: sun }
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], kinds: ChallengeKinds.all + [Sundial.self])
        let loaded = try #require(settings, "\(problems)")
        let site = LoginSite(loaded.upstreams[0].protected, loaded.challenges, LoginMaterial())
        return try #require(site.authenticators().logins.all.first)
    }

    /// Returns the session of a login that met the dial's challenge.
    private func session(_ authenticator: Authenticator, _ credential: Credential) async throws -> Session {
        let url = try #require(WebURL("http://127.0.0.1:1/hour"))
        let challenge = ExaminedResponse(
            status: 401, fields: [.wwwAuthenticate: "Sundial dial=\"garden\", gnomon=\"12ft\""], url: url)
        let login = authenticator.login(LoginOccasion(scope: .empty, challenge: challenge))
        return try await login.logIn(
            Conversation(
                sideRequests: NoSideRequests(), credentials: FixedCredentials(["sun": credential.fields]),
                attempts: LocalGate(), state: MemoryState(), now: { 0 }, report: { _ in }))
    }

    private func shadow(_ session: Session, _ authenticator: Authenticator) throws -> String? {
        let request = SigningRequest(method: "GET", origin: authenticator.key.origin, target: "/hour")
        return try session.signer?.sign(request).fields.first?.value.revealText()
    }

    @Test("a session of an added kind is handed over with its signer, whose counter continues")
    func image() async throws {
        let authenticator = try authenticator()
        let credential = Credential(name: "sun", fields: ["shadow": Secret("long")])
        let session = try await session(authenticator, credential)
        #expect(try shadow(session, authenticator) == "12ft 1 51 GET http://127.0.0.1:1/hour  long")
        let image = try #require(
            SessionImage(authenticator.key, session, establishedAt: 0, configuration: [1], versions: [:]))
        let back = try #require(try SessionImages.decoded(SessionImages.encoded([image])).first)
        let next = try #require(back.session(credential: credential, codec: authenticator.codec))
        #expect(try shadow(next, authenticator) == "12ft 2 51 GET http://127.0.0.1:1/hour  long")
        #expect(back.session(credential: credential, codec: .none) == nil)
    }

    @Test("a session of an added kind is established again if a key of the kind has changed")
    func terms() throws {
        #expect(try authenticator().terms == authenticator().terms)
        #expect(try authenticator().terms != authenticator(latitude: 52).terms)
        #expect(try authenticator().terms.contains("kind=sundial\ncredential=sun\nsundial=garden\nlatitude=51\n"))
    }
}

/// Side requests for logins that send none.
private struct NoSideRequests: SideRequests {
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        throw SideRequestError(.originNotAllowed, reason: "nothing is sent here")
    }
}

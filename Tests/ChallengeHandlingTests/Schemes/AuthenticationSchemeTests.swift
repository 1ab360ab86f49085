// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import Testing

@Suite("Basic authentication")
struct BasicSchemeTests {
    private func field(_ username: String, _ password: String) throws(LoginFailure) -> String {
        try field(["username": Secret(username), "password": Secret(password)])
    }

    private func field(_ fields: [String: Secret]) throws(LoginFailure) -> String {
        let pair = try NameAndPassword(Credential(name: "corp", fields: fields), challenge: "portal")
        return try BasicScheme.field(for: pair, credential: "corp", challenge: "portal").value.revealText()
    }

    @Test(
        "a Basic answer is encoded as in RFC 7617",
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123\u{A3}", "Basic dGVzdDoxMjPCow=="), ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
        ])
    func examples(username: String, password: String, expected: String) throws {
        #expect(try field(username, password) == expected)
    }

    @Test("a user name with a colon is refused by Basic")
    func colon() {
        let failure = #expect(throws: LoginFailure.self) { try field("a:b", "c") }
        #expect(failure?.code == .noCredential && failure?.detail.contains("colon") == true)
    }

    @Test("control characters in name or password are refused by Basic", arguments: ["a\n", "\u{0}", "\u{7F}", "a\tb"])
    func controls(text: String) {
        #expect(throws: LoginFailure.self) { try field(text, "c") }
        let failure = #expect(throws: LoginFailure.self) { try field("c", text) }
        #expect(failure?.code == .noCredential && failure?.detail.contains("\"password\"") == true)
    }

    @Test("Basic needs both name and password in UTF-8")
    func fields() {
        let missing = #expect(throws: LoginFailure.self) { try field(["username": Secret("a")]) }
        #expect(missing?.code == .noCredential && missing?.detail.contains("\"password\"") == true)
        let binary = #expect(throws: LoginFailure.self) {
            try field(["username": Secret("a"), "password": Secret([0xE4])])
        }
        #expect(binary?.code == .noCredential && binary?.detail.contains("UTF-8") == true)
    }
}

@Suite("Bearer in a list of schemes")
struct BearerSchemeTests {
    private static let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: "/a")
    private static let key = LatchKey(origin: url.origin, challenge: "api", credential: "api-client")

    /// Login that obtains a token for the requested scope.
    private struct Tokens: SessionLogin {
        let scope: Scope

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer for:\(scope)"))])
        }
    }

    private static func plan(realm: String? = nil) -> SchemePlan {
        SchemePlan(
            name: "api", schemes: [BearerScheme { Tokens(scope: $0.scope) }, BasicScheme()], realm: realm, key: key,
            address: url)
    }

    private func response(_ status: Int, _ values: [String]) -> ExaminedResponse {
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        return ExaminedResponse(status: status, fields: fields, url: Self.url)
    }

    @Test("Bearer is used first if both schemes are offered, and another if only that is")
    func preference() async throws {
        let rig = LoginRig(credentials: [TokenScript.client])
        let both = response(401, ["Basic realm=\"r\"", "Bearer"])
        let token = try await rig.logIn(SchemeLogin(Self.plan(), challenge: both, scope: Scope(text: "read")))
        #expect(token.fields.map(\.value) == [Secret("Bearer for:read")] && token.isVerified)
        let basic = try await rig.logIn(SchemeLogin(Self.plan(), challenge: response(401, ["Basic realm=\"r\""])))
        #expect(basic.fields.first?.value.revealText().hasPrefix("Basic ") == true && !basic.isVerified)
    }

    @Test(
        "Bearer challenges if a token is missing or invalid, and asks for more scope if it is too small",
        arguments: [
            (401, "Bearer", false, .challenged()), (401, "Bearer error=\"invalid_token\"", true, .challenged()),
            (401, "Bearer error=\"invalid_request\"", true, .challenged()), (403, "Bearer", true, .pass),
            (403, "Bearer error=\"insufficient_scope\", scope=\"a b\"", true, .challenged(scope: ["a", "b"])),
            // Without a session the 403 was not about a token of this proxy.
            (403, "Bearer error=\"insufficient_scope\", scope=\"a b\"", false, .pass),
            (401, "Basic realm=\"r\"", false, .challenged()), (403, "Basic realm=\"r\"", true, .pass),
        ] as [(Int, String, Bool, Challenge)])
    func challenges(status: Int, value: String, hasSession: Bool, challenge: Challenge) {
        let found = SchemeDetector(Self.plan()).examine(response(status, [value]), hasSession: hasSession)
        #expect(found == challenge)
    }

    @Test("a Bearer challenge of another realm is ignored")
    func realm() {
        let detector = SchemeDetector(Self.plan(realm: "Here"))
        #expect(detector.examine(response(401, ["Bearer realm=\"There\""]), hasSession: false) == .pass)
        #expect(detector.examine(response(401, ["Bearer realm=\"Here\""]), hasSession: false) == .challenged())
    }

    @Test("a larger scope that a 403 names is requested")
    func scope() async throws {
        let rig = LoginRig(credentials: [TokenScript.client])
        let small = response(403, ["Bearer error=\"insufficient_scope\", scope=\"write\""])
        let token = try await rig.logIn(SchemeLogin(Self.plan(), challenge: small, scope: Scope(text: "read write")))
        #expect(token.fields.map(\.value) == [Secret("Bearer for:read write")])
    }
}

/// Context that accepts `right` as the server's token.
private final class Context: TicketContext {
    func verify(_ token: [UInt8]) throws(TicketError) {
        guard token == Array("right".utf8) else { throw TicketError(.unknown, reason: "it does not decrypt") }
    }
}

/// Provider of tickets with numbered tokens, which can fail.
private final class Office: TicketProvider {
    final class Numbered: Ticket {
        let lifetime: Int64 = 3_600
        private let count = Atomic<Int>(0)

        func token() throws(TicketError) -> TicketToken {
            let number = count.wrappingAdd(1, ordering: .relaxed).newValue
            if number > 2 { throw TicketError(.unknown, reason: "the ticket has ended") }
            return TicketToken(bytes: Array("token \(number)".utf8), context: Context())
        }
    }

    let requests = Mutex<[TicketRequest]>([])
    private let failure: TicketError?

    init(failing failure: TicketError? = nil) { self.failure = failure }

    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket {
        requests.withLock { $0.append(request) }
        if let failure { throw failure }
        return Numbered()
    }

    var last: TicketRequest? { requests.withLock { $0.last } }
}

@Suite("Negotiate")
struct NegotiateSchemeTests {
    private func credential(_ fields: [String: String]) -> Credential {
        Credential(name: "robot", fields: fields.mapValues { Secret($0) })
    }

    @Test("each request carries its own Negotiate token until the ticket expires")
    func tokens() async throws {
        let session = try await NegotiateScheme(office: Office(), host: "www.example.com").session(nil, now: 1_000)
        #expect(session.expiresAt == 3_601_000)
        let signer = try #require(session.signer)
        #expect(signer.names == [.authorization])
        let first = try signer.sign(SigningRequest(to: "/"))
        let second = try signer.sign(SigningRequest(to: "/"))
        #expect(first.fields.map { $0.value.revealText() } == ["Negotiate dG9rZW4gMQ=="])
        #expect(second.fields.map { $0.value.revealText() } == ["Negotiate dG9rZW4gMg=="])
        #expect(throws: LoginFailure.self) { _ = try signer.sign(SigningRequest(to: "/")) }
    }

    @Test(
        "a wrong Negotiate token of the server is a failure",
        arguments: [
            (200, ["Negotiate cmlnaHQ="], true), (200, ["Negotiate d3Jvbmc="], false),
            (302, ["Negotiate d3Jvbmc="], false),
            (200, [], true), (200, ["Negotiate"], true), (200, ["Basic realm=\"a\""], true),
            (200, ["Negotiate !"], false), (200, ["Negotiate a"], false),
            (200, ["Negotiate cmlnaHQ=", "Negotiate cmlnaHQ="], false),
            // A refusal, on the way to the next challenge.
            (401, ["Negotiate d3Jvbmc="], true),
        ])
    func mutual(status: Int, values: [String], isTaken: Bool) async throws {
        let session = try await NegotiateScheme(office: Office(), host: "a").session(nil, now: 0)
        let signed = try #require(try session.signer?.sign(SigningRequest(to: "/")))
        let check = try #require(signed.check)
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        #expect((check.fault(status: status, fields: fields) == nil) == isTaken)
    }

    @Test("the Kerberos service is HTTP at the host unless another is configured")
    func service() async throws {
        let office = Office()
        _ = try await NegotiateScheme(office: office, host: "www.example.com").session(nil, now: 0)
        #expect(office.last?.service == "HTTP@www.example.com")
        _ = try await NegotiateScheme(office: office, host: "a", servicePrincipal: "HTTP/b").session(nil, now: 0)
        #expect(office.last?.service == "HTTP/b")
    }

    @Test("a keytab's tickets go into memory, a cache is used unchanged, and a password only without both")
    func fields() async throws {
        let office = Office()
        let scheme = NegotiateScheme(office: office, host: "a")
        _ = try await scheme.session(credential(["principal": "r", "keytab": "/k", "password": "p"]), now: 0)
        #expect(office.last?.keytab == "/k")
        #expect(office.last?.cache == "MEMORY:countersign-robot-r")
        #expect(office.last?.password == nil)
        _ = try await scheme.session(credential(["ticket-cache": "FILE:/c"]), now: 0)
        #expect(office.last?.cache == "FILE:/c")
        _ = try await scheme.session(credential(["username": "ann", "password": "p"]), now: 0)
        #expect(office.last?.principal == "ann")
        #expect(office.last?.password == Secret("p"))
        _ = try await scheme.session(nil, now: 0)
        #expect(office.last?.principal == nil)
        #expect(office.last?.cache == nil)
    }

    @Test("a refused Negotiate token is replaced by the next, while NTLM would send an equal answer again")
    func again() {
        let url = WebURL(origin: Origin(scheme: .https, host: "a"), path: "/")
        let schemes: [(any AuthenticationScheme, Challenge)] = [
            (NegotiateScheme(office: Office(), host: "a"), .challenged()), (NTLMScheme(isSupported: true), .refused),
        ]
        let response = ExaminedResponse(status: 401, fields: [.wwwAuthenticate: "Negotiate, NTLM"], url: url)
        for (scheme, challenge) in schemes {
            let detector = SchemeDetector(SchemePlan(name: "a", schemes: [scheme], key: nil, address: url))
            #expect(detector.examine(response, hasSession: true) == challenge)
            #expect(detector.examine(response, hasSession: false) == .challenged())
        }
    }

    @Test("a credential that the KDC rejects is sent to it once")
    func rejected() async throws {
        let office = Office(failing: TicketError(.rejected, reason: "Preauthentication failed"))
        let handler = NegotiateChallengeHandler(office: office, credential: credential(["password": "wrong"]))
        let request = ChallengeRequest(
            url: WebURL(origin: Origin(scheme: .https, host: "a"), path: "/"),
            challenge: try #require(ChallengeList(["Negotiate"]).challenges.first),
            conversation: LoginRig([]).conversation)
        for code in [LoginFailure.Code.rejected, .latched] {
            let failure = await #expect(throws: LoginFailure.self) { _ = try await handler.handle(request) }
            #expect(failure?.code == code)
        }
        #expect(office.requests.withLock(\.count) == 1)
    }

    @Test("without a Kerberos ticket there is no session")
    func noTicket() async throws {
        let office = Office(failing: TicketError(.rejected, reason: "Preauthentication failed"))
        await #expect(throws: TicketError(.rejected, reason: "Preauthentication failed")) {
            _ = try await NegotiateScheme(office: office, host: "a").session(nil, now: 0)
        }
    }
}

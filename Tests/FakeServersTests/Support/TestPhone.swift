// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Crypto
import CryptoExtras
import FakeServers
import FoundationEssentials
import Testing

/// An application on a telephone, as the product's own kits behave: it registers, answers and fetches tokens.
struct TestPhone {
    var key: TestKey
    var id = ""
    var platform: JSON = ["id": "com.sample", "clientPlatform": "ios", "version": "1.0"]
    let send: (FakeRequest) throws -> FakeResponse

    /// Creates a telephone without a registration.
    init(key: TestKey? = nil, send: @escaping (FakeRequest) throws -> FakeResponse) throws {
        self.key = try key ?? TestKey.shared.get()
        self.send = send
    }

    /// Returns a telephone that has registered.
    static func registered(at server: FakeMobileFirst, key: TestKey? = nil) throws -> TestPhone {
        var phone = try TestPhone(key: key) { server.respond(to: $0) }
        #expect(try phone.register().status == 201)
        return phone
    }

    var registration: JSON { ["device": ["id": "d1", "platform": "iOS"], "application": platform] }

    mutating func register(_ payload: JSON? = nil) throws -> FakeResponse {
        let parts = try key.sign(payload ?? registration, kid: nil)
        let response = try send(registrationRequest("POST", "", parts))
        if let location = response.field("Location") { id = location.split(separator: "/").last.map(String.init) ?? "" }
        return response
    }

    func registrationRequest(_ method: String, _ suffix: String, _ parts: [String]) -> FakeRequest {
        let data: JSON = ["header": .string(parts[0]), "payload": .string(parts[1]), "signature": .string(parts[2])]
        return json(method, "registration/v1/self\(suffix)", ["signedRegistrationData": data])
    }

    func preauthorize(_ scope: String, _ answers: JSON? = nil) throws -> FakeResponse {
        var members = [JSONMember("client_id", .string(id)), JSONMember("scope", .string(scope))]
        if let answers { members.append(JSONMember("challengeResponse", answers)) }
        return try send(json("POST", "preauth/v1/preauthorize", .object(members)))
    }

    func pin(_ pin: String, scope: String = "PinCodeAttempts") throws -> FakeResponse {
        try preauthorize(scope, ["PinCodeAttempts": ["pin": .string(pin)]])
    }

    func authorize(_ scope: String, redirect: String = "http://mfpredirecturi") throws -> FakeResponse {
        let query = "response_type=code&client_id=\(id)&scope=\(percentEncoded(scope))"
        return try send(
            FakeRequest("GET", "/mfp/api/az/v1/authorization?\(query)&redirect_uri=\(percentEncoded(redirect))"))
    }

    /// Returns the grant code of a redirect.
    func code(_ response: FakeResponse) throws -> String {
        let location = try #require(response.field("Location"))
        let query = try #require(location.split(separator: "?").last)
        return try #require(FormFields(parsing: query.utf8)["code"])
    }

    func assertion(
        jti: JSON, expires: Int64 = .max, issuer: String = "com.sample$ios$1.0", subject: String? = nil,
        kid: String? = nil
    ) throws -> String {
        let payload: JSON = [
            "iss": .string(issuer), "sub": .string(subject ?? id), "exp": .integer(expires), "jti": jti,
        ]
        return try key.sign(payload, kid: kid ?? id).joined(separator: ".")
    }

    func token(
        code: String, assertion: String? = nil, redirect: String = "http://mfpredirecturi", client: String? = nil
    ) throws -> FakeResponse {
        let signed = try assertion ?? self.assertion(jti: .string(code))
        return try form(
            "az/v1/token",
            [
                ("grant_type", "authorization_code"), ("code", code), ("client_id", client ?? id),
                ("redirect_uri", redirect), ("client_assertion_type", assertionType), ("client_assertion", signed),
            ])
    }

    /// Does all steps from preauthorize (with the right PIN), and returns the token.
    func login(scope: String = "accessRestricted") throws -> String {
        #expect(try pin("1234", scope: scope).status == 200)
        return try freshToken(scope: scope)
    }

    func freshToken(scope: String) throws -> String {
        let response = try token(code: code(authorize(scope)))
        return try #require(response.json?["access_token"]?.string)
    }

    func resource(_ path: String, token: String?, method: String = "GET", body: [UInt8] = []) throws -> FakeResponse {
        try send(
            FakeRequest(
                method, "/mfp/api/adapters/\(path)", fields: token.map { [("Authorization", "Bearer \($0)")] } ?? [],
                body: body))
    }

    func form(_ path: String, _ fields: [(String, String)], basic: String? = nil) throws -> FakeResponse {
        let body = fields.map { "\($0.0)=\(percentEncoded($0.1))" }.joined(separator: "&")
        var request = FakeRequest(
            "POST", "/mfp/api/\(path)", fields: [("Content-Type", "application/x-www-form-urlencoded")],
            body: Array(body.utf8))
        if let basic { request.fields.append(("Authorization", "Basic \(Base64.encode(Array(basic.utf8)))")) }
        return try send(request)
    }

    private func json(_ method: String, _ path: String, _ body: JSON) -> FakeRequest {
        FakeRequest(
            method, "/mfp/api/\(path)", fields: [("Content-Type", "application/json")], body: body.bytes)
    }
}

let assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

/// A key pair as an application makes one, and the signatures it makes with it.
struct TestKey: Sendable {
    let key: _RSA.Signing.PrivateKey
    /// The alphabet of base64 in which it writes.
    var isURLSafe = true

    init() throws {
        key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    }

    /// One for all tests that do not care: making one takes a while.
    static let shared = Result { try TestKey() }

    func jwk(kid: String?) throws -> JSON {
        let primitives = try key.publicKey.getKeyPrimitives()
        // With the zero byte in front, as Java's BigInteger writes it.
        let members: [JSONMember] = [
            JSONMember("kty", "RSA"), JSONMember("n", .string(encode([0] + Array(primitives.modulus)))),
            JSONMember("e", .string(encode(Array(primitives.publicExponent)))),
        ]
        return .object(members + (kid.map { [JSONMember("kid", .string($0))] } ?? []))
    }

    /// Header, payload and signature of an RS256 signature.
    func sign(_ payload: JSON, kid: String?, algorithm: String = "RS256") throws -> [String] {
        let header: JSON = ["alg": .string(algorithm), "jwk": try jwk(kid: kid)]
        let parts = [encode(header.bytes), encode(payload.bytes)]
        let digest = SHA256.hash(data: Array(parts.joined(separator: ".").utf8))
        let signature = try key.signature(for: digest, padding: .insecurePKCS1v1_5)
        return parts + [encode(Array(signature.rawRepresentation))]
    }

    private func encode(_ bytes: [UInt8]) -> String {
        isURLSafe ? Base64.encodeURL(bytes) : Base64.encode(bytes)
    }
}

/// Returns a MobileFirst server with two checks, two resources, and a clock that the test moves.
func testServer(
    _ clock: ManualClock = ManualClock(), _ change: (inout MobileFirstRules) -> Void = { _ in }
) -> FakeMobileFirst {
    var rules = MobileFirstRules(checks: [.pinCodeAttempts(), .userLogin()])
    rules.scopeMapping = ["accessRestricted": ["PinCodeAttempts"], "both": ["PinCodeAttempts", "UserLogin"]]
    change(&rules)
    let balance = AdapterResource("bank/balance", scope: "accessRestricted") { _ in .json(200, ["balance": 1]) }
    let open = AdapterResource("bank/open") { _ in .json(200, ["open": true]) }
    return FakeMobileFirst(rules: rules, adapters: [balance, open], clock: clock.clock)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// A request to a token endpoint, composed from a credential.
struct TokenRequest {
    /// The request to send.
    private(set) var sideRequest: SideRequest
    private let use: CredentialUse

    /// Creates the request of `login`. For the grant refresh-token, `refreshToken` is the current one. Throws
    /// `no-credential` if a field is missing or cannot be used.
    init(
        _ login: TokenLogin, _ use: CredentialUse, refreshToken: Secret?, keys: any SigningKeys, now: Int64
    ) async throws(LoginFailure) {
        let configuration = login.configuration
        self.use = use
        sideRequest = SideRequest(method: .post, url: configuration.url)
        var form: [(name: String, value: Secret)] = [("grant_type", Secret(configuration.grant.rawValue))]
        switch configuration.grant {
        case .clientCredentials:
            break
        case .password:
            form.append(("username", try use.field("username")))
            form.append(("password", try use.field("password")))
        case .refreshToken:
            var token = refreshToken
            if token == nil { token = try use.field("refresh-token") }
            if let token { form.append(("refresh_token", token)) }
        }
        if !login.scope.isEmpty { form.append(("scope", Secret("\(login.scope)"))) }
        if let audience = configuration.audience {
            form.append(("audience", Secret(audience)))
        } else if let resource = configuration.resource {
            form.append(("resource", Secret(resource)))
        }
        let proof = try ClientProof(configuration, use, keys: keys, now: now)
        form += proof.form
        for parameter in configuration.parameters {
            let value = try await use.text(parameter.value)
            // No parameter may occur twice (RFC 6749 §3.2).
            form.removeAll { $0.name == parameter.name }
            // An empty parameter counts as omitted (RFC 6749 §3.2).
            if !value.isEmpty { form.append((parameter.name, value)) }
        }
        sideRequest = .form(configuration.url, form)
        if let authorization = proof.authorization { sideRequest.fields[.authorization] = authorization }
    }
}

/// Client authentication of a request (RFC 6749 §2.3).
struct ClientProof {
    var form: [(name: String, value: Secret)] = []
    var authorization: String?

    init(
        _ configuration: TokenConfiguration, _ use: CredentialUse, keys: any SigningKeys, now: Int64
    ) throws(LoginFailure) {
        if configuration.grant != .clientCredentials,
            configuration.clientAuthentication.proofFields == ["client-secret"], use.credential["client-secret"] == nil
        {
            // A public client sends only its identifier (§3.2.1), or not even that.
            if let id = use.credential["client-id"] { form = [("client_id", id)] }
            return
        }
        let id = try use.field("client-id")
        switch configuration.clientAuthentication {
        case .basic:
            // §2.3.1 requires form encoding first, so a colon in them is harmless.
            let pair =
                FormEncoding.encoded(id) + [UInt8(ascii: ":")] + FormEncoding.encoded(try use.field("client-secret"))
            authorization = "Basic \(Base64.encode(pair))"
        case .body:
            form = [("client_id", id), ("client_secret", try use.field("client-secret"))]
        case .tls:
            // The server finds the client by it (RFC 8705 §2).
            form = [("client_id", id)]
        case .privateKeyJWT:
            let assertion = try ClientAssertion(
                clientID: id, audience: configuration.assertionAudience ?? "\(configuration.url)", use, keys: keys,
                now: now)
            form = [
                ("client_assertion_type", Secret("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")),
                ("client_assertion", assertion.compact),
            ]
        }
    }
}

extension CredentialUse {
    /// Returns the field of that name. Throws `no-credential` if it is missing.
    func field(_ name: String) throws(LoginFailure) -> Secret {
        try credential.required(name, for: key.challenge)
    }

    /// Returns `template` filled with the credential's fields.
    func text(_ template: TextTemplate) async throws(LoginFailure) -> Secret {
        do throws(TemplateError) {
            return try await template.render(credential)
        } catch {
            throw error.loginFailure(challenge: key.challenge)
        }
    }

    /// Returns `no-credential` for an unusable value of a field.
    func unusable(_ field: String, _ why: String) -> LoginFailure {
        LoginFailure(
            .noCredential, challenge: key.challenge,
            detail: "The field \"\(field)\" of the credential \"\(credential.name)\" \(why)")
    }
}

/// A JWT with which a client authenticates by its private key. Its issuer and subject are the client, its audience is
/// the token endpoint, and it is valid once (RFC 7523 §3, RFC 7515 §7.1).
struct ClientAssertion {
    /// The three parts, joined by dots.
    let compact: Secret

    /// The lifetime in seconds: enough for a small clock difference, too short to be worth stealing.
    private static let validSeconds: Int64 = 300

    /// Signs an assertion at `now` (milliseconds since 1970) with the credential's field `private-key`. The field
    /// `key-id`, if present, identifies that key to the server. Throws `no-credential` if the key cannot be used.
    init(
        clientID: Secret, audience: String, _ use: CredentialUse, keys: any SigningKeys, now: Int64
    ) throws(LoginFailure) {
        let pem = try use.field("private-key")
        do throws(StateError) {
            let key = try keys.load(pem: pem)
            var header: [String: JSONValue] = ["alg": .string(key.algorithm), "typ": "JWT"]
            if let id = use.credential["key-id"] { header["kid"] = .string(id.revealText()) }
            let name = JSONValue.string(clientID.revealText())
            let seconds = now / 1000
            let payload: JSONValue = [
                "iss": name, "sub": name, "aud": .string(audience), "iat": .integer(seconds),
                "exp": .integer(seconds + Self.validSeconds), "jti": .string(Self.freshName()),
            ]
            let signed =
                "\(Base64.encode(JSONValue.object(header).serialized(), .url))."
                + Base64.encode(payload.serialized(), .url)
            let signature = try key.signature(for: Array(signed.utf8))
            compact = Secret("\(signed).\(Base64.encode(signature, .url))")
        } catch {
            throw use.unusable("private-key", "cannot sign: \(error.reason).")
        }
    }

    /// Returns 128 random bits. The server accepts each identifier once (RFC 7523 §3, 7).
    private static func freshName() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in Hex.encode(generator.next() as UInt64) }.joined()
    }
}

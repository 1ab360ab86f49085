// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// A request to a token endpoint, as it is put together from a credential.
struct TokenRequest {
    /// What goes out.
    private(set) var sideRequest: SideRequest
    private let use: CredentialUse

    /// The request of `login`; with the grant refresh-token, `refreshToken` is the one in force. Throws `no-credential`
    /// where a field is missing or cannot be used.
    init(
        _ login: TokenLogin, _ use: CredentialUse, refreshToken: Secret?, keys: any SigningKeys, now: Int64
    ) throws(LoginFailure) {
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
            let value = try use.text(parameter.value)
            // RFC 6749 §3.2: none may occur twice.
            form.removeAll { $0.name == parameter.name }
            // Without a value it counts as left out there, too.
            if !value.isEmpty { form.append((parameter.name, value)) }
        }
        sideRequest = .form(configuration.url, form)
        if let authorization = proof.authorization { sideRequest.fields[.authorization] = authorization }
    }
}

/// What a client says to prove who it is (RFC 6749 §2.3).
struct ClientProof {
    var form: [(name: String, value: Secret)] = []
    var authorization: String?

    init(
        _ configuration: TokenConfiguration, _ use: CredentialUse, keys: any SigningKeys, now: Int64
    ) throws(LoginFailure) {
        if configuration.grant != .clientCredentials, configuration.clientAuthentication != .privateKeyJWT,
            use.credential["client-secret"] == nil
        {
            // A public client only names itself (§3.2.1), or not even that.
            if let id = use.credential["client-id"] { form = [("client_id", id)] }
            return
        }
        let id = try use.field("client-id")
        switch configuration.clientAuthentication {
        case .basic:
            // §2.3.1 has both encoded as in a form first, so that a colon in them is none.
            let pair =
                FormEncoding.encoded(id) + [UInt8(ascii: ":")] + FormEncoding.encoded(try use.field("client-secret"))
            authorization = "Basic \(Base64.encode(pair))"
        case .body:
            form = [("client_id", id), ("client_secret", try use.field("client-secret"))]
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
    /// The field of that name, or `no-credential`.
    func field(_ name: String) throws(LoginFailure) -> Secret {
        guard let value = credential[name] else {
            throw TemplateError.fieldMissing(field: name, credential: credential.name)
                .loginFailure(challenge: key.challenge)
        }
        return value
    }

    /// `template` with the credential's fields in it.
    func text(_ template: TextTemplate) throws(LoginFailure) -> Secret {
        do throws(TemplateError) {
            return try template.render(credential)
        } catch {
            throw error.loginFailure(challenge: key.challenge)
        }
    }

    /// `no-credential`, because of what is in a field.
    func unusable(_ field: String, _ why: String) -> LoginFailure {
        LoginFailure(
            .noCredential, challenge: key.challenge,
            detail: "The field \"\(field)\" of the credential \"\(credential.name)\" \(why)")
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Revokes an access token (RFC 7009). A refresh token is left alone: it is the credential, which nobody could replace but a person.
public struct TokenRevocation: SessionLogout {
    /// The revocation endpoint.
    public let url: WebURL
    /// How the client says who it is, and where the token stands in a request.
    public let configuration: TokenConfiguration
    /// The challenge, the credential, and the token endpoint's origin.
    public let key: LatchKey
    private let keys: any SigningKeys

    /// A revocation.
    public init(url: WebURL, _ configuration: TokenConfiguration, key: LatchKey, keys: any SigningKeys) {
        self.url = url
        self.configuration = configuration
        self.key = key
        self.keys = keys
    }

    /// Revokes the token of `session`. A server that does not know it any more says 200, too (section 2.2).
    public func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure) {
        guard let token = token(of: session) else { return }
        let use = try await CredentialUse.look(up: key, in: conversation)
        let proof = try ClientProof(configuration, use, keys: keys, now: conversation.now())
        var form: [(name: String, value: Secret)] = [("token", token), ("token_type_hint", Secret("access_token"))]
        form += proof.form
        var request = SideRequest.form(url, form)
        if let authorization = proof.authorization { request.fields[.authorization] = authorization }
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            throw LoginFailure(error, step: "the revocation", challenge: key.challenge)
        }
        conversation.report(ConversationStep(challenge: key.challenge, text: "revocation: \(response.status)"))
        guard (200..<300).contains(response.status) else {
            throw LoginFailure(
                .failed, challenge: key.challenge,
                detail: "The server answered the revocation of a token with status \(response.status). Check "
                    + "`token.revocation`.")
        }
    }

    private func token(of session: Session) -> Secret? {
        guard let value = session.fields.first(where: { $0.name == configuration.placement.field })?.value else {
            return nil
        }
        let prefix = configuration.placement.prefix.isEmpty ? [] : Array("\(configuration.placement.prefix) ".utf8)
        let bytes = value.revealBytes()
        return bytes.starts(with: prefix) && bytes.count > prefix.count ? Secret(bytes[prefix.count...]) : nil
    }
}

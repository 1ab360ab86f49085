// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Wins a token as a confidential client of a MobileFirst 8.0 server (`grant: mobilefirst`): a client identifier and a
/// secret at the token endpoint, and no challenges at all.
public struct ConfidentialClientLogin: SessionLogin {
    /// The token endpoint: `https://mfp.example.com/mfp/api/az/v1/token`.
    public let tokenURL: WebURL
    /// The challenge, the credential (fields `client-id` and `client-secret`), and the upstream's origin.
    public let key: LatchKey
    /// What is asked for; empty: nothing is, and the server gives `RegisteredClient`.
    public let scope: Scope
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public let retryRejectedAfter: Duration?

    /// A login.
    public init(tokenURL: WebURL, key: LatchKey, scope: Scope = .empty, retryRejectedAfter: Duration? = nil) {
        self.tokenURL = tokenURL
        self.key = key
        self.scope = scope
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let use = try await CredentialUse.look(up: key, retryRejectedAfter: retryRejectedAfter, in: conversation)
        let request = try request(for: use)
        let calls = MobileFirstCalls(name: key.challenge, conversation: conversation)
        let now = conversation.now()
        let response: SideResponse
        do throws(MobileFirstInterruption) {
            response = try await calls.send(request, "token")
        } catch {
            switch error {
            case .failed(let failure): throw failure
            // What INVALID_CLIENT_ID means of a client that registers itself is invalid_client here.
            case .unknownClient: throw use.reject(.rejected, serverWait: nil, in: conversation)
            }
        }
        return try session(response, sentAt: now, use, calls)
    }

    private func session(
        _ response: SideResponse, sentAt: Int64, _ use: CredentialUse, _ calls: MobileFirstCalls
    ) throws(LoginFailure) -> Session {
        let retryAt = calls.retryAt(response)
        switch response.status {
        case 200:
            guard let token = BearerToken(response.body, sentAt: sentAt) else {
                throw calls.failure("The server's answer holds no token that can be used.")
            }
            calls.report("token: 200\(token.seconds.map { ", valid for \($0) s" } ?? "")")
            return token.session
        case 401:
            throw use.reject(.rejected, serverWait: retryAt, in: calls.conversation)
        case 400 where JSONValue(parsing: response.body)?["error"] == "invalid_client":
            throw use.reject(.rejected, serverWait: retryAt, in: calls.conversation)
        case 403:
            // The secret was right: the server knows who asks and refuses what is asked for.
            calls.report("token: 403")
            throw calls.failure(
                "The server does not allow the confidential client the scope \"\(scope)\". Add it to the client's "
                    + "allowed scope there, or change `scope`.", retryAt: retryAt)
        default:
            calls.report("token: \(response.status), unexpected")
            throw calls.failure(
                "The server answered the token request with status \(response.status). Check `token.url` and the scope "
                    + "\"\(scope)\".", retryAt: retryAt)
        }
    }

    /// Identifier and secret go by Basic (RFC 7617 §2) as they are: MobileFirst does not encode them as a form first.
    private func request(for use: CredentialUse) throws(LoginFailure) -> SideRequest {
        var pair = try field("client-id", of: use).revealBytes()
        guard !pair.contains(UInt8(ascii: ":")) else {
            throw LoginFailure(
                .noCredential, challenge: key.challenge,
                detail:
                    "The field \"client-id\" of the credential \"\(key.credential)\" holds a colon, which Basic cannot "
                    + "carry.")
        }
        pair.append(UInt8(ascii: ":"))
        pair += try field("client-secret", of: use).revealBytes()
        var fields: [(name: String, value: Secret)] = [("grant_type", Secret("client_credentials"))]
        if !scope.isEmpty { fields.append(("scope", Secret("\(scope)"))) }
        var request = SideRequest.form(tokenURL, fields)
        request.fields[.authorization] = "Basic \(Base64.encode(pair))"
        return request
    }

    private func field(_ name: String, of use: CredentialUse) throws(LoginFailure) -> Secret {
        guard let value = use.credential[name] else {
            throw TemplateError.fieldMissing(field: name, credential: key.credential)
                .loginFailure(challenge: key.challenge)
        }
        return value
    }
}

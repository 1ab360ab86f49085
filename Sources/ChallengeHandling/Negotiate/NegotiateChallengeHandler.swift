// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Answers Negotiate with Kerberos (RFC 4559): each request carries a token of its own, made from one ticket.
public final class NegotiateChallengeHandler: ChallengeHandler {
    private let office: any TicketOffice
    private let credential: Credential?
    private let servicePrincipal: String?

    /// A handler that has its tickets from `office`, for the fields `principal`, `keytab`, `ticket-cache` or `password` of
    /// `credential`; without one, for whatever the system's GSS-API finds. The service is `HTTP@host` unless `servicePrincipal`
    /// names another.
    public init(office: any TicketOffice, credential: Credential? = nil, servicePrincipal: String? = nil) {
        self.office = office
        self.credential = credential
        self.servicePrincipal = servicePrincipal
    }

    /// Whether it is Negotiate, at its beginning.
    public func canHandle(_ request: ChallengeRequest) -> Bool {
        request.challenge.isScheme("Negotiate") && request.challenge.token68 == nil
    }

    /// A ticket for the server; gives up where there is none here, or where the server refused its token. Throws
    /// `login-rejected` or `account-locked` where the KDC says so.
    public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        guard !request.isRepeated, let conversation = request.conversation else { return nil }
        let scheme = NegotiateScheme(
            office: office, host: request.url.origin.host, servicePrincipal: servicePrincipal)
        do throws(TicketError) {
            return ChallengeResponse(try await scheme.session(credential, now: conversation.now()))
        } catch {
            switch error.kind {
            case .locked, .rejected:
                throw LoginFailure(
                    error.kind == .locked ? .accountLocked : .rejected, challenge: "Negotiate",
                    detail: "The KDC gives no ticket: \(error.reason).")
            case .unknown, .unsupported:
                conversation.report(ConversationStep(challenge: "Negotiate", text: error.reason))
                return nil
            }
        }
    }
}

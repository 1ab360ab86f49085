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
    /// `login-rejected` or `account-locked` where the KDC rejects the credential, and `login-latched` from then on.
    public func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse? {
        guard !request.isRepeated, let conversation = request.conversation else { return nil }
        let use = credential.map { credential in
            CredentialUse(
                key: LatchKey(origin: request.url.origin, challenge: "Negotiate", credential: credential.name),
                credential: credential)
        }
        try use?.requireOpenLatch(in: conversation)
        let occasion = SchemeOccasion(name: "Negotiate", url: request.url, use: use, conversation: conversation)
        let scheme = NegotiateScheme(
            office: office, host: request.url.origin.host, servicePrincipal: servicePrincipal)
        switch try await scheme.session(for: occasion) {
        case .session(let session): return ChallengeResponse(session)
        case .useless(let reason):
            occasion.report(reason)
            return nil
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// The scheme Negotiate with Kerberos (RFC 4559): each request carries a token of its own, ahead of any challenge.
///
/// A token per request needs no connection to be remembered by the server, and serves those that do remember.
public struct NegotiateScheme: AuthenticationScheme {
    private let office: any TicketOffice
    private let service: String

    /// The scheme at `host`, whose service is `HTTP@host` unless `servicePrincipal` names another.
    public init(office: any TicketOffice, host: String, servicePrincipal: String? = nil) {
        self.office = office
        service = servicePrincipal ?? "HTTP@\(host)"
    }

    /// `negotiate`.
    public var name: String { "negotiate" }

    /// Servers remember by the connection who it is.
    public var bindsConnections: Bool { true }

    /// `Negotiate`, which has no realm (RFC 4559 §4.1), so that one that is meant counts for other schemes only. A refused token says nothing of the credential: the next one may be
    /// right, after a restart of the server with another key, say.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        challenges.contains { $0.isScheme("Negotiate") } ? .challenged() : nil
    }

    /// A session whose tokens need no further word of the server. What the KDC rejects closes the latch.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        do throws(TicketError) {
            let session = try await session(occasion.use?.credential, now: occasion.conversation.now())
            occasion.report("negotiate: a ticket for \(service)")
            return .session(session)
        } catch {
            switch (error.kind, occasion.use) {
            case (.locked, let use?): throw use.reject(.locked, serverWait: nil, in: occasion.conversation)
            case (.rejected, let use?): throw use.reject(.rejected, serverWait: nil, in: occasion.conversation)
            default: return .useless(error.reason)
            }
        }
    }

    /// A session by the credential's fields `principal`, `keytab`, `ticket-cache` and `password`; without any of them by what
    /// GSS-API itself finds. `now` in milliseconds since 1970; the session ends with the ticket.
    public func session(_ credential: Credential?, now: Int64) async throws(TicketError) -> Session {
        var request = TicketRequest(service: service)
        request.principal = (credential?["principal"] ?? credential?["username"])?.revealText()
        request.keytab = credential?["keytab"]?.revealText()
        request.cache = credential?["ticket-cache"]?.revealText()
        request.password = request.keytab == nil && request.cache == nil ? credential?["password"] : nil
        // What the keytab wins is kept in memory, apart for each principal, and serves until it ends.
        if request.keytab != nil, request.cache == nil {
            request.cache = "MEMORY:countersign-\(credential?.name ?? "")-\(request.principal ?? "")"
        }
        let ticket = try await office.ticket(request)
        var session = Session(expiresAt: now.saturatingAdd(ticket.lifetime.saturatingMultiply(1000)))
        session.signer = NegotiateSigner(ticket: ticket)
        return session
    }
}

/// Writes `Authorization: Negotiate` for each request.
final class NegotiateSigner: RequestSigner {
    private let ticket: any Ticket

    init(ticket: any Ticket) { self.ticket = ticket }

    var names: [HTTPField.Name] { [.authorization] }

    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        do throws(TicketError) {
            let token = try ticket.token()
            let field = InjectedField(
                name: .authorization, value: Secret("Negotiate \(Base64.encode(token.bytes))"))
            return SignedFields([field], check: token.context.map(NegotiateCheck.init))
        } catch {
            throw LoginFailure(.failed, challenge: "negotiate", detail: "There is no Kerberos token: \(error.reason).")
        }
    }

    func learn(status: Int, fields: HTTPFields, target: String) {}

    var learnsFrom: [HTTPField.Name]? { [] }
}

/// Has the server prove who it is, where it does: with the answer goes the last token of the conversation (RFC 4559 §5).
///
/// A server that sends none has kept to the RFC as well; one whose token is not right does not have the service's key.
final class NegotiateCheck: AnswerCheck {
    private let context: any TicketContext

    init(context: any TicketContext) { self.context = context }

    func fault(status: Int, fields: HTTPFields) -> String? {
        // A refusal is what it is, whoever says it.
        guard status != 401 else { return nil }
        let values = fields[values: .wwwAuthenticate]
        guard !values.isEmpty else { return nil }
        guard let challenges = try? AuthenticationChallenge.parse(values) else {
            return "its WWW-Authenticate cannot be read"
        }
        let tokens = challenges.filter { $0.isScheme("Negotiate") }.compactMap(\.token68)
        guard let text = tokens.first else { return nil }
        guard tokens.count == 1, let token = Base64.decode(text) else { return "its token cannot be read" }
        do throws(TicketError) {
            try context.verify(token)
            return nil
        } catch {
            return error.reason
        }
    }
}

extension SchemeKind {
    /// `negotiate`.
    package static let negotiate = SchemeKind(rawValue: "negotiate", needsCredential: false) { settings, site, _ in
        NegotiateScheme(
            office: site.material.tickets, host: site.upstream.url.origin.host,
            servicePrincipal: settings.servicePrincipal)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// The scheme Negotiate with Kerberos (RFC 4559). Each request carries its own token before any challenge.
///
/// A token per request works both with servers that remember a connection's user and with those that do not.
public struct NegotiateScheme: AuthenticationScheme {
    private let office: any TicketProvider
    private let service: String

    /// Creates the scheme at `host`. Its service is `HTTP@host` unless `servicePrincipal` names another.
    public init(office: any TicketProvider, host: String, servicePrincipal: String? = nil) {
        self.office = office
        service = servicePrincipal ?? "HTTP@\(host)"
    }

    /// `negotiate`.
    public var name: String { "negotiate" }

    /// True: servers remember the user by the connection.
    public var bindsConnections: Bool { true }

    /// Returns a challenge if Negotiate is offered. It has no realm (RFC 4559 §4.1), so a configured realm applies to
    /// other schemes only. A refused token says nothing about the credential: the next token may be right, for example
    /// after the server restarts with another key.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        challenges.contains { $0.isScheme("Negotiate") } ? .challenged() : nil
    }

    /// Returns a session that needs nothing more from the server. A rejection by the KDC closes the latch.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        do throws(TicketError) {
            let session = try await session(occasion.use?.credential, now: occasion.conversation.now())
            occasion.report("negotiate: a ticket for \(service)")
            return .session(session)
        } catch {
            switch (error.kind, occasion.use) {
            case (.locked, let use?): throw await use.reject(.locked, serverWait: nil, in: occasion.conversation)
            case (.rejected, let use?): throw await use.reject(.rejected, serverWait: nil, in: occasion.conversation)
            default: return .useless(error.reason)
            }
        }
    }

    /// Returns a session for the credential's fields `principal`, `keytab`, `ticket-cache` and `password`. Without any
    /// of them GSS-API's own defaults apply. `now` is in milliseconds since 1970; the session ends with the ticket.
    public func session(_ credential: Credential?, now: Int64) async throws(TicketError) -> Session {
        var request = TicketRequest(service: service)
        request.principal = (credential?["principal"] ?? credential?["username"])?.revealText()
        request.keytab = credential?["keytab"]?.revealText()
        request.cache = credential?["ticket-cache"]?.revealText()
        request.password = request.keytab == nil && request.cache == nil ? credential?["password"] : nil
        // Tickets from the keytab are cached in memory for each principal until they expire.
        if request.keytab != nil, request.cache == nil {
            request.cache = "MEMORY:countersign-\(credential?.name ?? "")-\(request.principal ?? "")"
        }
        let ticket = try await office.ticket(request)
        var session = Session(expiresAt: now.saturatingAdd(ticket.lifetime.saturatingMultiply(1000)))
        session.signer = NegotiateSigner(ticket: ticket)
        return session
    }
}

/// Signer that writes `Authorization: Negotiate` for each request.
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

/// Check of the server's identity by the last token of the conversation (RFC 4559 §5).
///
/// A server that sends no token complies with the RFC as well. A server whose token is wrong does not have the
/// service's key.
final class NegotiateCheck: AnswerCheck {
    private let context: any TicketContext

    init(context: any TicketContext) { self.context = context }

    func fault(status: Int, fields: HTTPFields) -> String? {
        // A refusal counts even without proof of the server's identity.
        guard status != 401 else { return nil }
        let values = fields[values: .wwwAuthenticate]
        guard !values.isEmpty else { return nil }
        let list = ChallengeList(values)
        let challenges = list.challenges(of: "Negotiate")
        let tokens = challenges.compactMap(\.token68)
        guard let text = tokens.first else {
            // Something is there in place of the token.
            return challenges.isEmpty || list.unread.isEmpty ? nil : "its token cannot be read"
        }
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

/// Handler that answers Negotiate with Kerberos (RFC 4559). Each request carries its own token, made from one ticket.
public final class NegotiateChallengeHandler: ChallengeHandler {
    private let office: any TicketProvider
    private let credential: Credential?
    private let servicePrincipal: String?

    /// Creates a handler that gets its tickets from `office`. They are for the fields `principal`, `keytab`,
    /// `ticket-cache` or `password` of `credential`; without a credential GSS-API's own defaults apply. The service is
    /// `HTTP@host` unless `servicePrincipal` names another.
    public init(office: any TicketProvider, credential: Credential? = nil, servicePrincipal: String? = nil) {
        self.office = office
        self.credential = credential
        self.servicePrincipal = servicePrincipal
    }

    /// True: servers remember the user by the connection.
    public var bindsConnections: Bool { true }

    /// Returns whether the challenge is the first one of Negotiate.
    public func canHandle(_ request: ChallengeRequest) -> Bool {
        request.challenge.isScheme("Negotiate") && request.challenge.token68 == nil
    }

    /// Answers with a ticket for the server. Gives up if no ticket is available here, or if the server refused its
    /// token. Throws `login-rejected` or `account-locked` if the KDC rejects the credential, and `login-latched`
    /// afterwards.
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

/// The scheme NTLM (MS-NTHT), which authenticates connections. libcurl implements it if built with NTLM, which later
/// versions are not.
public struct NTLMScheme: AuthenticationScheme {
    private let isSupported: Bool

    /// Creates the scheme; `isSupported` is true if the installed libcurl has NTLM.
    public init(isSupported: Bool) { self.isSupported = isSupported }

    /// `ntlm`.
    public var name: String { "ntlm" }

    /// True: servers remember the user by the connection.
    public var bindsConnections: Bool { true }

    /// Returns `refused` if NTLM is offered: the next connection would send the same refused credential. NTLM has no
    /// realm, so a configured realm applies to other schemes only.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        challenges.contains { $0.isScheme("NTLM") } ? .refused : nil
    }

    /// Returns a session with the credential's fields `username` (`user` or `DOMAIN\user`) and `password`.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        guard isSupported else {
            return .useless("the installed libcurl was built without NTLM")
        }
        let use = try occasion.requireUse()
        let pair = try NameAndPassword(use.credential, challenge: occasion.name)
        var session = Session(unverified: use)
        session.connection = ConnectionCredential(username: pair.username, password: pair.password)
        return .session(session)
    }
}

extension SchemeKind {
    /// `ntlm`.
    package static let ntlm = SchemeKind(rawValue: "ntlm", authenticatesConnections: true) { _, site, _ in
        NTLMScheme(isSupported: site.material.hasNTLM)
    }
}

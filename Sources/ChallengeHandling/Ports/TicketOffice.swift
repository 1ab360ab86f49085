// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Who asks for a Kerberos ticket, for which service, and what it proves that by. What is `nil` is the system's own choice.
public struct TicketRequest: Sendable {
    /// `HTTP@www.example.com`, a service on a host, or `HTTP/www.example.com@REALM`, a principal.
    public var service: String
    /// The client's principal.
    public var principal: String?
    /// The file that holds its keys.
    public var keytab: String?
    /// The credential cache that holds its tickets: a file, or `KEYRING:…`, `DIR:…`, `KCM:…`.
    public var cache: String?
    /// Its password.
    public var password: Secret?

    /// A request.
    public init(
        service: String, principal: String? = nil, keytab: String? = nil, cache: String? = nil, password: Secret? = nil
    ) {
        self.service = service
        self.principal = principal
        self.keytab = keytab
        self.cache = cache
        self.password = password
    }
}

/// Why there is no ticket.
public struct TicketError: Error, Sendable, Equatable {
    /// What it says about the credential.
    public enum Kind: Sendable, Equatable {
        /// The KDC locked the principal, or its key has expired.
        case locked
        /// The KDC rejected the key or the password, or does not know the principal.
        case rejected
        /// Nothing: no ticket in the cache, no KDC, no key in the keytab.
        case unknown
        /// This machine has no GSS-API.
        case unsupported
    }

    /// The kind.
    public var kind: Kind
    /// The library's words; without secrets.
    public var reason: String

    /// An error.
    public init(_ kind: Kind, reason: String) {
        self.kind = kind
        self.reason = reason
    }
}

/// A Kerberos ticket for a service (RFC 4120).
public protocol Ticket: AnyObject, Sendable {
    /// How long it lasts, in seconds, from when it was given out.
    var lifetime: Int64 { get }
    /// A token for one request (RFC 4559 §4). Asks nobody, and may be called by several threads at once.
    func token() throws(TicketError) -> TicketToken
}

/// What goes with one request.
public struct TicketToken: Sendable {
    /// The token.
    public var bytes: [UInt8]
    /// What verifies the server's token in the answer; `nil` where the library is not asked.
    public var context: (any TicketContext)?

    /// A token.
    public init(bytes: [UInt8], context: (any TicketContext)? = nil) {
        self.bytes = bytes
        self.context = context
    }
}

/// What was begun with a token. Used by one thread at a time.
public protocol TicketContext: AnyObject, Sendable {
    /// Takes the server's token, which proves that it has the service's key (RFC 4120 §5.5.2). Throws where it does not; asks
    /// nobody.
    func verify(_ token: [UInt8]) throws(TicketError)
}

/// Gives out Kerberos tickets.
public protocol TicketOffice: Sendable {
    /// A ticket. May ask the KDC; does not run on the caller's executor.
    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket
}

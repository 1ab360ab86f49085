// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Request for a Kerberos ticket: client, service and proof of identity.
///
/// For `nil`, the system chooses.
public struct TicketRequest: Sendable {
    /// Service on a host, `HTTP@www.example.com`, or a principal, `HTTP/www.example.com@REALM`.
    public var service: String
    /// Client principal.
    public var principal: String?
    /// Path of the file with the keys of the client.
    public var keytab: String?
    /// Credential cache with the tickets of the client: a file, or `KEYRING:…`, `DIR:…`, `KCM:…`.
    public var cache: String?
    /// Password of the client.
    public var password: Secret?

    /// Creates a request.
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

/// Reason for a missing ticket.
public struct TicketError: Error, Sendable, Equatable {
    /// Consequences for the credential.
    public enum Kind: Sendable, Equatable {
        /// The KDC locked the principal, or its key has expired.
        case locked
        /// The KDC rejected the key or the password, or does not know the principal.
        case rejected
        /// None: no ticket in the cache, no KDC, or no key in the keytab.
        case unknown
        /// None: this machine has no GSS-API.
        case unsupported
    }

    /// Consequence for the credential.
    public var kind: Kind
    /// Message of the library, without secrets.
    public var reason: String

    /// Creates an error.
    public init(_ kind: Kind, reason: String) {
        self.kind = kind
        self.reason = reason
    }
}

/// Kerberos ticket for a service (RFC 4120).
public protocol Ticket: AnyObject, Sendable {
    /// Lifetime in seconds from the time of issue.
    var lifetime: Int64 { get }
    /// Returns a token for one request (RFC 4559 §4), without network access. Called by several threads at once.
    func token() throws(TicketError) -> TicketToken
}

/// Token for one request, with its context.
public struct TicketToken: Sendable {
    /// Bytes of the token.
    public var bytes: [UInt8]
    /// Context that verifies the server's token in the response; `nil` without the library.
    public var context: (any TicketContext)?

    /// Creates a token.
    public init(bytes: [UInt8], context: (any TicketContext)? = nil) {
        self.bytes = bytes
        self.context = context
    }
}

/// Security context begun with a token, for use by one thread at a time.
public protocol TicketContext: AnyObject, Sendable {
    /// Verifies the server's token, which proves possession of the service's key (RFC 4120 §5.5.2).
    ///
    /// Throws if the token is wrong. Needs no network access.
    func verify(_ token: [UInt8]) throws(TicketError)
}

/// Port that provides Kerberos tickets.
public protocol TicketProvider: Sendable {
    /// Returns a ticket. May ask the KDC, and does not run on the caller's executor.
    func ticket(_ request: TicketRequest) async throws(TicketError) -> any Ticket
}

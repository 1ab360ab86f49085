// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// Request that a conversation sends itself: a login form, a token request, a registration.
public struct SideRequest: Sendable {
    /// HTTP method.
    public var method: HTTPRequest.Method
    /// Target. Secrets are sent only to origins in the configuration (see `SideRequests`).
    public var url: WebURL
    /// Fields other than `Host` and `Content-Length`, which the transport writes.
    public var fields: HTTPFields
    /// Body, which may contain a password.
    public var body: Secret?
    /// Time limit for the whole request.
    public var timeout: Duration
    /// True if the beginning of a page is enough.
    ///
    /// The response then ends after its head if the head announces no text (an event stream, a file), and a longer body is cut at
    /// the limit of the transport.
    public var allowsPartialBody = false
    /// True for a look at the page of a caller's safe request, which is no part of a login.
    package var isLook = false
    /// True if the request goes out on a connection that carried nothing before.
    public var needsNewConnection = false
    /// Credential that authenticates the connection (NTLM); that connection carries no other request.
    public var connection: ConnectionCredential?

    /// Creates a request; the default time limit of 10 s is that of `submitLoginForm` in MobileFirst.
    public init(
        method: HTTPRequest.Method, url: WebURL, fields: HTTPFields = [:], body: Secret? = nil,
        timeout: Duration = .seconds(10)
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.timeout = timeout
    }
}

/// Response to a side request. May be a redirect, because redirects are never followed.
public struct SideResponse: Sendable {
    /// Status code, 200 to 599.
    public var status: Int
    /// Response fields.
    public var fields: HTTPFields
    /// Body, up to the limit of the transport (1 MiB).
    public var body: [UInt8]

    /// Creates a response.
    public init(status: Int, fields: HTTPFields = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// Reason for a side request without a response.
///
/// No kind says anything about a credential: the outcome is *unknown*.
public struct SideRequestError: Error, Sendable, Equatable {
    /// Kinds of errors.
    public enum Kind: Sendable, Equatable {
        /// The response exceeded the limit of the transport, or was not HTTP.
        case badAnswer
        /// The server requires a login page, whose login has failed with this failure.
        case guarded(LoginFailure)
        /// The configuration does not contain the origin; nothing was sent.
        case originNotAllowed
        /// The time limit passed.
        case timedOut
        /// The TLS handshake failed.
        case tls
        /// The connection failed or was lost.
        case unreachable
    }

    /// Kind of error.
    public var kind: Kind
    /// Reason for the log, without secrets; may contain hosts and paths.
    public var reason: String
    /// Reason for callers, without a full stop; empty if the kind suffices.
    public var publicReason: String
    /// True if no part of the request can have reached the server.
    public var isUnsent: Bool

    /// Creates an error. Without `isUnsent`, the kind decides: a failed handshake, for instance, sends nothing.
    public init(_ kind: Kind, reason: String, publicReason: String = "", isUnsent: Bool? = nil) {
        self.isUnsent =
            isUnsent
            ?? {
                switch kind {
                case .guarded, .originNotAllowed, .tls: true
                case .badAnswer, .timedOut, .unreachable: false
                }
            }()
        self.kind = kind
        self.reason = reason
        self.publicReason = publicReason
    }
}

/// Port through which a conversation reaches the network. Tests provide a script of responses.
public protocol SideRequests: Sendable {
    /// Sends `request` and returns the whole response, with any status.
    ///
    /// Follows no redirect, and refuses an origin that the configuration does not contain.
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// A request that a conversation sends on its own account: a login form, a token request, a registration.
public struct SideRequest: Sendable {
    /// The method.
    public var method: HTTPRequest.Method
    /// Where it goes. Secrets leave only for origins that the configuration names (see `SideRequests`).
    public var url: WebURL
    /// Its fields, besides `Host` and `Content-Length`, which the transport writes.
    public var fields: HTTPFields
    /// Its body. It may carry a password, hence the type.
    public var body: Secret?
    /// How long the whole of it may take.
    public var timeout: Duration
    /// Whether only a page's beginning is of interest: the answer is whole with its head where that tells of no text to be
    /// read (an event stream, a file), and with what the transport allows where it is longer.
    public var isLook = false
    /// What its connection is authenticated with (NTLM); that connection carries nothing else.
    public var connection: ConnectionCredential?

    /// A request; the default time limit is that of `submitLoginForm` in MobileFirst, 10 s.
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

/// The answer to a side request. Redirects are never followed, so it can be one.
public struct SideResponse: Sendable {
    /// The status code, 200 to 599.
    public var status: Int
    /// The fields.
    public var fields: HTTPFields
    /// The body, at most as long as the transport allows (1 MiB).
    public var body: [UInt8]

    /// A response.
    public init(status: Int, fields: HTTPFields = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}

/// Why a side request brought no answer. None of these says anything about a credential: they are *unknown* outcomes.
public struct SideRequestError: Error, Sendable, Equatable {
    /// What went wrong.
    public enum Kind: Sendable, Equatable {
        /// The answer was larger than the transport allows, or no HTTP.
        case badAnswer
        /// The server stands behind a login page, whose login has failed so.
        case guarded(LoginFailure)
        /// The origin is none that the configuration names; nothing was sent.
        case originNotAllowed
        /// The time limit passed.
        case timedOut
        /// The TLS handshake failed.
        case tls
        /// No connection, or it was lost.
        case unreachable
    }

    /// What went wrong.
    public var kind: Kind
    /// The reason in words, without secrets, for the log: it may name hosts and files.
    public var reason: String
    /// The reason as a caller may read it, without a full stop; empty where the kind says it all.
    public var told: String

    /// An error.
    public init(_ kind: Kind, reason: String, told: String = "") {
        self.kind = kind
        self.reason = reason
        self.told = told
    }
}

/// The one way by which a conversation reaches the network. Tests hand it a script of replies.
public protocol SideRequests: Sendable {
    /// Sends `request` and returns the whole answer, whatever its status. Follows no redirect; refuses an origin that
    /// the configuration does not name.
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse
}

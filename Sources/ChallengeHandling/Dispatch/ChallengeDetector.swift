// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// Detector of one login's challenge in responses. Does no I/O.
public protocol ChallengeDetector: Sendable {
    /// Kind of challenge in a word or two, for `explain`.
    var kind: String { get }
    /// Responses that the detector must examine.
    var filter: ResponseFilter { get }
    /// Returns the property that identified a challenge, for people; nil if the status and its fields show it.
    func sign(of response: ExaminedResponse) -> String?
    /// Returns the meaning of `response`; `hasSession` is true if the request carried this login's session.
    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge
    /// Returns true if a challenge may be behind `response`, which shows no page: the answer to HEAD, a part, or 304.
    func mayConceal(_ response: ExaminedResponse) -> Bool
}

extension ChallengeDetector {
    /// By default, responses with the statuses of challenges.
    public var filter: ResponseFilter { .statusesOfChallenges }

    /// Returns nil: by default the status and its fields show it.
    public func sign(of response: ExaminedResponse) -> String? { nil }

    /// Returns false: by default a challenge shows itself in status and fields.
    public func mayConceal(_ response: ExaminedResponse) -> Bool { false }
}

/// Meaning of a response for one login.
///
/// A detector decides by the response alone. An exchange, which knows the session's state, treats `challenged` as
/// `refused` if the session may still be valid.
public enum Challenge: Sendable, Equatable {
    /// A session is required, or a new one in place of the request's session.
    ///
    /// RFC 9110 §11.6.1, RFC 6750 §3, or a login page. With a scope: a session of that scope (RFC 6750 §3.1; a registry
    /// also names the scope to a request without a session).
    case challenged(scope: [String] = [])
    /// Undecided until the beginning of the body is examined (login pages, security checks).
    case needsBody
    /// Not a challenge for this login.
    case pass
    /// The request's session was refused in a way that another login cannot change (RFC 9110 §15.5.2).
    ///
    /// Another login would only send the same credential again (Basic, NTLM, a fixed token).
    case refused
    /// The request must be repeated with its session (409 with MobileFirst's `MFP-Conflict`).
    case replay
    /// A new session is required because the old one expired; the credential is fine.
    ///
    /// `stale` of Digest, RFC 7616 §3.3.
    case stale
}

/// Response of the upstream, as far as detectors examine it.
public struct ExaminedResponse: Sendable {
    /// Maximum examined bytes of a body.
    public static let bodyLimit = 64 * 1024

    /// Status code.
    public var status: Int
    /// Response fields.
    public var fields: HTTPFields
    /// Decoded beginning of the body, at most `bodyLimit` bytes; nil while only the head is available.
    public var body: [UInt8]?
    /// Method of the request.
    public var method: HTTPRequest.Method
    /// Address of the request at the upstream. Its query may contain secrets.
    public var url: WebURL

    /// Creates a response.
    public init(
        status: Int, fields: HTTPFields = [:], body: [UInt8]? = nil, method: HTTPRequest.Method = .get, url: WebURL
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.method = method
        self.url = url
    }

    /// Creates the examined part of the answer to a request of the program's own.
    package init(_ answer: SideResponse, method: HTTPRequest.Method = .get, url: WebURL) {
        self.init(
            status: answer.status, fields: answer.fields, body: Array(answer.body.prefix(Self.bodyLimit)),
            method: method,
            url: url)
    }
}

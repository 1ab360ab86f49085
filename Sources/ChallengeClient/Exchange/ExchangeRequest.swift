// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPWire

/// A request as the client needs it, without its fields.
package struct ExchangeRequest {
    /// The method, known or not.
    package var method: RequestMethod
    /// The method's name if it is not a known method.
    package var otherMethod: String
    /// The body's framing.
    package var framing: BodyFraming
    /// True if the caller's own `Authorization` is sent: no session's is, and challenges pass to the caller.
    package var keepsCredentials: Bool
    /// The caller's own `Authorization`, sent unless a session replaces it.
    package var ownAuthorization: OwnAuthorization
    /// True if another protocol is asked for; a 101 may be the answer (RFC 9110 §7.8).
    package var isUpgrade: Bool

    /// True if this is a health check: it never waits for a login and does not count in metrics.
    package var isCheck: Bool

    /// True if this is an auth request: it is answered with the sessions' fields, and nothing is sent upstream.
    package var isAuthRequest: Bool

    /// True if the upstream is asked for 100 before the body (RFC 9110 §10.1.1). No effect without a body.
    package var expectsContinue: Bool

    /// The length of the data in an `aws-chunked` body; `nil` for other bodies.
    package var chunkedDataLength: UInt64?

    /// True if the request omits the credential of a session that authenticates connections.
    var omitsConnectionCredential = false

    /// True if the request tries a credential. It is not sent again: the server may have counted it as an attempt.
    var triesCredential = false

    /// Creates a request.
    package init(
        method: RequestMethod, otherMethod: String = "", framing: BodyFraming, expectsContinue: Bool = false,
        keepsCredentials: Bool = false, ownAuthorization: OwnAuthorization = .none, isUpgrade: Bool = false,
        isCheck: Bool = false, isAuthRequest: Bool = false
    ) {
        self.ownAuthorization = ownAuthorization
        self.isCheck = isCheck
        self.isAuthRequest = isAuthRequest
        self.expectsContinue = expectsContinue
        self.keepsCredentials = keepsCredentials
        self.isUpgrade = isUpgrade
        self.method = method
        self.otherMethod = otherMethod
        self.framing = framing
    }

    /// The method's name.
    var methodName: String { method == .other ? otherMethod : method.name }

    /// True if another sending does no harm and needs no body (RFC 9110 §9.2.2).
    var canResend: Bool { method.isIdempotent && !hasBody && !isUpgrade }

    /// True if a body follows.
    var hasBody: Bool {
        switch framing {
        case .none: false
        case .length(let length): length > 0
        case .chunked: true
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPWire

/// A request as the client needs to know it, without its fields.
package struct ExchangeRequest {
    /// The method, known or not.
    package var method: RequestMethod
    /// The method's bytes as text, where it is none of those known.
    package var otherMethod: String
    /// The body's framing.
    package var framing: BodyFraming
    /// True if the caller's own `Authorization` goes: then no session's does, and the answer is the caller's to judge.
    package var keepsCredentials: Bool
    /// True if it asks for another protocol, and a 101 is an answer to it (RFC 9110 §7.8).
    package var isUpgrade: Bool

    /// True if it is ours, to see whether the upstream serves: it waits for no login, and nothing is counted of it.
    package var isCheck: Bool

    /// True if another proxy asks about it and sends it: it is answered with the sessions' fields, and nothing goes upstream.
    package var isSubrequest: Bool

    /// True if the upstream is asked to say 100 before it is sent the body (RFC 9110 §10.1.1). Without effect where there is
    /// no body.
    package var expectsContinue: Bool

    /// True if it goes without the credential of a session that authenticates connections: the upstream asks for none there.
    var goesUnbound = false

    /// A request.
    package init(
        method: RequestMethod, otherMethod: String = "", framing: BodyFraming, expectsContinue: Bool = false,
        keepsCredentials: Bool = false, isUpgrade: Bool = false, isCheck: Bool = false, isSubrequest: Bool = false
    ) {
        self.isCheck = isCheck
        self.isSubrequest = isSubrequest
        self.expectsContinue = expectsContinue
        self.keepsCredentials = keepsCredentials
        self.isUpgrade = isUpgrade
        self.method = method
        self.otherMethod = otherMethod
        self.framing = framing
    }

    /// The method's name.
    var methodName: String { method == .other ? otherMethod : method.name }

    /// True if it does no harm to send it once more, and all of it is there for that (RFC 9110 §9.2.2).
    var mayGoAgain: Bool { method.isIdempotent && !hasBody && !isUpgrade }

    /// True if a body follows.
    var hasBody: Bool {
        switch framing {
        case .none: false
        case .length(let length): length > 0
        case .chunked: true
        }
    }
}

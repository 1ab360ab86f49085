// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Something that happened upstream and that the demonstration tells in a line. Never holds an answer or a token.
package enum DemoEvent: Sendable, Equatable, CustomStringConvertible {
    /// An answer was right.
    case answerAccepted(check: String)
    /// An answer was wrong.
    case answerRejected(check: String)
    /// A check is blocked.
    case checkFailed(check: String, reason: String)
    /// A check demands an answer; with the attempts that remain.
    case challengeIssued(check: String, attempts: Int64)
    /// A client has registered.
    case clientRegistered(application: String)
    /// A login page was served.
    case loginPageServed(path: String)
    /// Something came that is no request; which rule it breaks.
    case noRequest(reason: String)
    /// A resource answered.
    case resourceServed(method: String, path: String, status: Int)
    /// A token was issued for that scope and so many seconds.
    case tokenIssued(scope: String, seconds: Int64)
    /// A request lacked what the resource demands.
    case unauthorized(path: String, challenge: String)

    /// One line, without a line break.
    package var description: String {
        switch self {
        case .answerAccepted(let check): "upstream: answer to \(check) accepted"
        case .answerRejected(let check): "upstream: answer to \(check) rejected"
        case .checkFailed(let check, let reason): "upstream: \(check) failed: \(reason)"
        case .challengeIssued(let check, let attempts):
            "upstream: challenge \(check) issued, \(attempts) attempt\(attempts == 1 ? " remains" : "s remain")"
        case .clientRegistered(let application): "upstream: client of \(application) registered"
        case .loginPageServed(let path): "upstream: login page served in place of \(path)"
        case .noRequest(let reason): "upstream: no request: \(reason)"
        case .resourceServed(let method, let path, let status): "upstream: \(method) \(path) served with \(status)"
        case .tokenIssued(let scope, let seconds): "upstream: token issued for \(scope), valid \(seconds) s"
        case .unauthorized(let path, let challenge): "upstream: \(path) refused: \(challenge)"
        }
    }
}

/// A listener to the events, called on the thread on which it does.
package typealias DemoTeller = @Sendable (DemoEvent) -> Void

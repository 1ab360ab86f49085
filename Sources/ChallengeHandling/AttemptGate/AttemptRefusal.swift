// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The gate's "no": why a value is not sent now, until when, and what opens the way. All that is told of it has this wording: local
/// replies, `status`, the status page and `doctor`.
public struct AttemptRefusal: Sendable, Equatable {
    /// The rule that says no.
    public enum Reason: Sendable, Equatable {
        /// The answer of a program's own handler was rejected before.
        case answerRejected
        /// The server tells how many attempts remain, and that none of them is to be used.
        case attemptsKept(SecurityCheckChallenge.RemainingAttempts, keeping: Int)
        /// The server has rejected the value just now.
        case closed(Latch)
        /// The server rejected the value before.
        case latched(Latch)
    }

    /// The rule that says no.
    public let reason: Reason
    /// The challenge.
    public let challenge: String
    /// The use that the latch is closed for, or would be; `nil` of an answer of a program's own handler.
    public let key: LatchKey?

    private var credential: String {
        key.map { "the credential \"\($0.credential)\"" } ?? "a credential of another host"
    }

    /// A refusal to send the credential of `key`.
    init(_ reason: Reason, _ key: LatchKey) { self.init(reason, challenge: key.challenge, key: key) }

    /// A refusal to send what no credential here holds: an answer of a program's own handler, or another node's value.
    init(_ reason: Reason, challenge: String, key: LatchKey? = nil) {
        self.reason = reason
        self.challenge = challenge
        self.key = key
    }

    /// The end of the refusal, in milliseconds since 1970; `nil` if only what `remedy` says opens the way.
    public var until: Int64? {
        switch reason {
        case .answerRejected, .attemptsKept: nil
        case .closed(let latch), .latched(let latch): latch.opensAt
        }
    }

    /// The reason, in a sentence; no secret, nothing internal.
    public var why: String {
        switch reason {
        case .answerRejected:
            "The server has rejected this answer to \"\(challenge)\" before, so it is not sent again."
        case .attemptsKept(let remaining, let count):
            "The server says that \(remaining.text), and `keep-attempts: \(count)` leaves none to use, so nothing was sent."
        case .closed(let latch):
            switch latch.reason {
            case .locked:
                "The server rejected \(credential) and locked the account. It is not sent again."
            case .rejected: "The server rejected \(credential). It is not sent again."
            }
        case .latched(let latch):
            switch latch.reason {
            case .locked:
                "The server locked the account of \(credential) at \(Moment.text(latch.closedAt)), so it is not sent again."
            case .rejected:
                "The server rejected \(credential) at \(Moment.text(latch.closedAt)), so it is not sent again."
            }
        }
    }

    /// The remedy, in a sentence.
    public var remedy: String {
        let unlatch = "Change the credential, or run `countersign unlatch \(challenge)`."
        switch reason {
        case .answerRejected:
            return "Give another one, or open the latch (`unlatch`) where it has become right."
        case .attemptsKept:
            return "Check \(credential) and wait until the server counts anew, or log in once by other "
                + "means."
        case .closed(let latch) where latch.reason == .locked: return "Have the account unlocked. \(unlatch)"
        case .closed, .latched: return unlatch
        }
    }

    /// The failure of a login that ends here.
    public var failure: LoginFailure {
        let code: LoginFailure.Code =
            switch reason {
            case .answerRejected, .latched: .latched
            case .attemptsKept: .attemptsKept
            case .closed(let latch): latch.reason == .locked ? .accountLocked : .rejected
            }
        var failure = LoginFailure(code, challenge: challenge, detail: "\(why) \(remedy)", retryAt: until)
        switch reason {
        case .closed, .latched: failure.latch = key
        case .answerRejected, .attemptsKept: break
        }
        return failure
    }
}

extension SecurityCheckChallenge.RemainingAttempts {
    fileprivate var text: String {
        switch self {
        case .count(1): "1 attempt remains"
        case .count(let count): "\(count) attempts remain"
        case .unknown, .unreadable: "an unreadable number of attempts remains"
        }
    }

    /// True if an answer would use one of the last `count` attempts. A server that counts in a way that cannot be read may be at the
    /// last one; one that tells nothing keeps nobody from anything.
    func isKept(by count: Int) -> Bool {
        switch self {
        case .count(let remaining): remaining <= Int64(count)
        case .unknown: false
        case .unreadable: count > 0
        }
    }
}

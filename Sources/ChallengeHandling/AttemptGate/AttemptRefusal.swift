// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Refusal of the attempt gate: reason, end and remedy.
///
/// Local replies, `status`, the status page and `doctor` all use this wording.
public struct AttemptRefusal: Sendable, Equatable {
    /// Rule that refuses.
    public enum Reason: Sendable, Equatable {
        /// The answer of a program-defined handler was rejected before.
        case answerRejected
        /// The server reports the remaining attempts, and all of them must be kept.
        case attemptsKept(SecurityCheckChallenge.RemainingAttempts, keeping: Int)
        /// The server has just rejected the value.
        case closed(Latch)
        /// The server rejected the value before.
        case latched(Latch)
        /// No server has accepted the value, and its submissions had no clear outcome.
        case submitted(SubmissionTable.Count)
    }

    /// Rule that refuses.
    public let reason: Reason
    /// Name of the challenge.
    public let challenge: String
    /// Key of the closed latch; nil for an answer of a program-defined handler.
    public let key: LatchKey?
    /// Source of the refused value, if known.
    public var source: AnsweringSource?

    private var credential: String {
        key.map { "the credential \"\($0.credential)\"" } ?? "a credential of another node"
    }

    /// Creates a refusal to send the credential of `key`.
    init(_ reason: Reason, _ key: LatchKey) { self.init(reason, challenge: key.challenge, key: key) }

    /// Creates a refusal of an answer of a program-defined handler, or of another node's value.
    init(_ reason: Reason, challenge: String, key: LatchKey? = nil) {
        self.reason = reason
        self.challenge = challenge
        self.key = key
    }

    /// End of the refusal in ms since 1970; nil if only the remedy ends it.
    public var until: Int64? {
        switch reason {
        case .answerRejected, .attemptsKept: nil
        case .closed(let latch), .latched(let latch): latch.opensAt
        case .submitted(let count): count.next
        }
    }

    /// Reason in one sentence, without secrets and internals.
    public var why: String {
        switch reason {
        case .answerRejected:
            "The server has rejected this answer to \"\(challenge)\" before, so it is not sent again."
        case .attemptsKept(let remaining, let count):
            "The server says that \(remaining.text), and `keep-attempts: \(count)` leaves none to use, so nothing was sent."
        case .closed(let latch):
            switch latch.reason {
            case .locked:
                "The server rejected \(credential) and locked the account\(latch.cause). It is not sent again."
            case .rejected: "The server rejected \(credential)\(latch.cause). It is not sent again."
            }
        case .latched(let latch):
            switch latch.reason {
            case .locked:
                "The server locked the account of \(credential) at \(Moment.text(latch.closedAt))\(latch.cause), so it is not sent "
                    + "again."
            case .rejected:
                "The server rejected \(credential) at \(Moment.text(latch.closedAt))\(latch.cause), so it is not sent again."
            }
        case .submitted(let count):
            "No answer has shown yet if the server accepts \(credential), which was sent \(count.text). Since the server may have "
                + "counted that as a wrong password, it is not sent again before \(Moment.text(count.next))."
        }
    }

    /// Remedy, with the kind of the source that gave the value.
    public var remedy: String { remedy(source?.kind) }

    /// Remedy for operators, with the path of the source that gave the value.
    package var localRemedy: String { remedy(source?.name) }

    private func remedy(_ sourceName: String?) -> String {
        var unlatch = "Change the credential, or run `countersign unlatch \(challenge)`."
        if let source, let sourceName {
            unlatch =
                "The value came from \(sourceName). \(source.change) If the value is right, correct the account at the server "
                + "and run `countersign unlatch \(challenge)`."
        }
        switch reason {
        case .answerRejected:
            return "Give another answer, or open the latch (`unlatch`) if this one has become valid."
        case .attemptsKept:
            return "Check \(credential) and wait until the server resets its count, or log in once by other "
                + "means."
        case .closed(let latch) where latch.reason == .locked: return "Have the account unlocked. \(unlatch)"
        case .closed, .latched: return unlatch
        case .submitted:
            return
                "Run `countersign login \(challenge)`, which tries at once and shows the answer, or change the credential."
        }
    }

    /// Failure of a login that this refusal ends.
    public var failure: LoginFailure {
        let code: LoginFailure.Code =
            switch reason {
            case .answerRejected, .latched: .latched
            case .attemptsKept: .attemptsKept
            case .closed(let latch): latch.reason == .locked ? .accountLocked : .rejected
            case .submitted: .failed
            }
        var failure = LoginFailure(code, challenge: challenge, detail: "\(why) \(remedy)", retryAt: until)
        switch reason {
        case .closed, .latched:
            failure.latch = key
            if let source, source.name != source.kind { failure.cause = "The value came from \(source.name)." }
        case .answerRejected, .attemptsKept: break
        case .submitted: failure.isHeldBack = true
        }
        return failure
    }
}

extension Latch {
    /// The statement that decided, after a colon; empty if unknown.
    fileprivate var cause: String { evidence.isEmpty ? "" : ": \(evidence)" }
}

extension SubmissionTable.Count {
    fileprivate var text: String { submissions == 1 ? "once" : "\(submissions) times" }
}

extension SecurityCheckChallenge.RemainingAttempts {
    fileprivate var text: String {
        switch self {
        case .count(1): "1 attempt remains"
        case .count(let count): "\(count) attempts remain"
        case .unknown, .unreadable: "an unreadable number of attempts remains"
        }
    }

    /// Returns true if an answer would use one of the last `count` attempts.
    ///
    /// An unreadable count may mean the last attempt; without a count, no attempts are kept.
    func isKept(by count: Int) -> Bool {
        switch self {
        case .count(let remaining): remaining <= Int64(count)
        case .unknown: false
        case .unreadable: count > 0
        }
    }
}

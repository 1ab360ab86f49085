// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The `User-Agent` of a request: its caller's, or that of a login, to find out if the server binds the session to it.
package enum UserAgentTrial: Sendable, Equatable {
    /// The caller's.
    case none
    /// That of the login of `slot`, with the session that was refused under the caller's.
    case sent(slot: Int)
    /// That of the login of `slot`, with a new session: the one before had ended, perhaps under the caller's.
    case renewed(slot: Int)

    /// The slot of the login; `nil` for the caller's.
    package var slot: Int? {
        switch self {
        case .none: nil
        case .sent(let slot), .renewed(let slot): slot
        }
    }
}

// The trial of the login's `User-Agent`: the session that a login has just established does not open the request. Some
// servers bind a session to the program that logged in, and many of these end it under another one.
extension ExchangeMachine {
    /// Tries the login's `User-Agent` after a challenge right after its login; `nil` if this is a challenge as any other.
    mutating func tryUserAgent(_ answer: ExaminedAnswer) -> AnswerAction? {
        guard establishedSlot == answer.slot, !answer.mayRepeat, rounds < Self.maxRounds else { return nil }
        if userAgent == .none, answer.mayBeBound, answer.canReplay { return sendUnderLogins(of: answer.slot) }
        // Refused again: the session may have ended when it came under the caller's.
        guard userAgent == .sent(slot: answer.slot) else { return nil }
        state = .holding(slot: answer.slot)
        return .confirm(slot: answer.slot)
    }

    /// Sends the request again under the `User-Agent` of the login of `slot`.
    mutating func sendUnderLogins(of slot: Int) -> AnswerAction {
        userAgent = .sent(slot: slot)
        rounds += 1
        state = .settling(then: .resend, swallowed: 0)
        return .discard
    }

    /// Returns true, once, if the session of `slot` that has ended came under both, so that another one is established for the login's
    /// alone.
    mutating func renewsUnderLogins(of slot: Int) -> Bool {
        guard userAgent == .sent(slot: slot) else { return false }
        userAgent = .renewed(slot: slot)
        return true
    }
}

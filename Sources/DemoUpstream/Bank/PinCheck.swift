// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The security check PinCodeAttempts for one client, as IBM's sample has it: PIN 1234, three attempts, then a minute's block.
/// A success holds ten minutes. Times are milliseconds since 1970.
struct PinCheck {
    /// Its word to a request.
    enum Outcome: Equatable {
        /// It demands an answer.
        case challenge(remaining: Int64, message: String?)
        /// It is blocked.
        case failure
        /// It is satisfied.
        case success
    }

    private var wrong: Int64 = 0
    private var message: String?
    private var blockedUntil: Int64 = 0
    private var successUntil: Int64 = 0

    /// Puts a request before it, with an answer or without.
    mutating func handle(_ answer: JSONValue?, now: Int64) -> Outcome {
        // The answer is not even looked at.
        if now < blockedUntil { return .failure }
        if answer == nil, now < successUntil { return .success }
        guard let answer else { return .challenge(remaining: 3 - wrong, message: message) }
        successUntil = 0
        if answer["pin"] == "1234" {
            self = PinCheck()
            successUntil = now + 600_000
            return .success
        }
        wrong += 1
        guard wrong < 3 else {
            self = PinCheck()
            blockedUntil = now + 60_000
            return .failure
        }
        message = "Pin code is not valid. Hint: 1234"
        return .challenge(remaining: 3 - wrong, message: message)
    }

    /// The seconds that success still holds.
    func secondsLeft(now: Int64) -> Int64? { now < successUntil ? (successUntil - now) / 1000 : nil }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// The answers of a program's own challenge handlers that servers have rejected, and where they accepted one: latches and marks for what
/// comes from no stored credential. They live as long as the process.
struct RejectedAnswers: Sendable {
    /// The most of each that are remembered; then the oldest is forgotten.
    private static let most = 256

    private var rejected: [(challenge: String, answer: Secret)] = []
    private var accepted: [(challenge: String, answer: Secret, address: WebURL)] = []

    /// Returns whether `answer` was rejected before.
    func contains(_ answer: Secret, to challenge: String) -> Bool {
        rejected.contains { $0.challenge == challenge && $0.answer == answer }
    }

    /// The server rejected `answer`.
    mutating func reject(_ answer: Secret, to challenge: String) {
        accepted.removeAll { $0.challenge == challenge && $0.answer == answer }
        guard !contains(answer, to: challenge) else { return }
        if rejected.count >= Self.most { rejected.removeFirst() }
        rejected.append((challenge, answer))
    }

    /// The server accepted `answer` at `address`, where it had asked for one.
    mutating func accept(_ answer: Secret, to challenge: String, at address: WebURL) {
        accepted.removeAll { $0.challenge == challenge && $0.answer == answer }
        if accepted.count >= Self.most { accepted.removeFirst() }
        accepted.append((challenge, answer, address.withoutQuery))
    }

    /// The address at which the server accepted `answer` last; `nil` if it never did.
    func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        accepted.last { $0.challenge == challenge && $0.answer == answer }?.address
    }

    /// Forgets the rejected ones to `challenge`; `nil`: all.
    mutating func unlatch(_ challenge: String?) {
        rejected.removeAll { challenge == nil || $0.challenge == challenge }
    }
}

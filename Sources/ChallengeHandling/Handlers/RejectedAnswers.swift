// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets
internal import Synchronization

/// The answers of challenge handlers that servers have rejected: the latch for what comes from no stored credential
/// (CONTRIBUTING, rule 3).
package final class RejectedAnswers: Sendable {
    /// So many are remembered; beyond, the oldest is forgotten.
    private static let most = 256

    private let known = Mutex<[(challenge: String, answer: Secret)]>([])
    private let accepted = Mutex<[(challenge: String, answer: Secret, address: WebURL)]>([])

    /// None.
    package init() {}

    /// Throws `login-latched` where `answer` was rejected before.
    package func requireNew(_ answer: Secret, to challenge: String) throws(LoginFailure) {
        guard known.withLock({ $0.contains { $0.challenge == challenge && $0.answer == answer } }) else { return }
        throw LoginFailure(
            .latched, challenge: challenge,
            detail:
                "The server has rejected this answer to \"\(challenge)\" before, so it is not sent again. Give another "
                + "one, or open the latch (`unlatch`) where it has become right.")
    }

    /// The server rejected `answer`.
    package func note(_ answer: Secret, to challenge: String) {
        accepted.withLock { $0.removeAll { $0.challenge == challenge && $0.answer == answer } }
        known.withLock { known in
            guard !known.contains(where: { $0.challenge == challenge && $0.answer == answer }) else { return }
            if known.count >= Self.most { known.removeFirst() }
            known.append((challenge, answer))
        }
    }

    /// The server accepted `answer` at `address`, where it had asked for one.
    func accept(_ answer: Secret, to challenge: String, at address: WebURL) {
        accepted.withLock { accepted in
            accepted.removeAll { $0.challenge == challenge && $0.answer == answer }
            if accepted.count >= Self.most { accepted.removeFirst() }
            accepted.append((challenge, answer, address.withoutQuery))
        }
    }

    /// The address at which the server accepted `answer` last; `nil` if it never did.
    func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        accepted.withLock { $0.last { $0.challenge == challenge && $0.answer == answer }?.address }
    }

    /// Forgets those to `challenge`.
    package func remove(_ challenge: String) { known.withLock { $0.removeAll { $0.challenge == challenge } } }

    /// Forgets all.
    package func removeAll() { known.withLock { $0.removeAll() } }
}

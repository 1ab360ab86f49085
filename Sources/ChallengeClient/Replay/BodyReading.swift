// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// What is known of a request's body before it is sent, where a session's fields depend on it (`auth-int` of Digest).
package struct BodyReading {
    private enum State {
        case unread
        case reading([any RunningDigest])
        case read([BodyDigest])
        case lost
    }

    /// How a step ended.
    package enum Step: Sendable {
        /// All of it has been read.
        case done
        /// There is more here.
        case goOn
        /// More has to come from the caller.
        case hungry
        /// It is longer than what is kept of a body, or cannot be read back.
        case lost
    }

    /// How much is hashed before others get their turn: a millisecond or so, by the slowest of the functions.
    private static let share = 128 * 1024

    private var state = State.unread

    /// The digests, once it was read.
    var digests: [BodyDigest]? { if case .read(let digests) = state { digests } else { nil } }

    /// Has `body` read from its beginning, for `digests`.
    mutating func begin(_ digests: [any RunningDigest], of body: inout ReplayBuffer) {
        state = body.beginReading() ? .reading(digests) : .lost
    }

    /// Reads some more.
    mutating func read(_ body: inout ReplayBuffer) -> Step {
        guard case .reading(let digests) = state else { return .lost }
        var rest = Self.share
        while rest > 0 {
            let bytes = body.readBytes(upTo: 16_384)
            guard body.canReplay, !body.isBroken else {
                state = .lost
                return .lost
            }
            if bytes.isEmpty {
                guard body.isExhausted else { return .hungry }
                body.endReading()
                state = .read(digests.map { BodyDigest(algorithm: $0.algorithm, bytes: $0.finish()) })
                return .done
            }
            for digest in digests { digest.update(bytes[...]) }
            rest -= bytes.count
        }
        return .goOn
    }
}

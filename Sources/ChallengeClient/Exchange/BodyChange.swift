// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Secrets

/// A request's body with values of its sessions: first read whole, then sent in place of the caller's.
///
/// The caller's body remains held, so that another round of logins can change it again.
struct BodyChange {
    private enum State {
        case none
        case reading([UInt8])
        case read([UInt8])
        case changed(Secret, by: RequestInjections)
    }

    private var state = State.none
    /// The number of bytes of the changed body that the running transfer has taken.
    private var taken = 0

    /// True if anything was done.
    var isBegun: Bool { if case .none = state { false } else { true } }
    /// True while the body is read.
    var isReading: Bool { if case .reading = state { true } else { false } }
    /// The caller's body, once read.
    var original: [UInt8]? { if case .read(let body) = state { body } else { nil } }
    /// The changed body.
    var changed: Secret? { if case .changed(let body, _) = state { body } else { nil } }

    /// Returns the length of the body as changed by `values`; `nil` if the body was not changed by these values.
    func length(by values: RequestInjections) -> Int? {
        guard case .changed(let body, let own) = state, own === values else { return nil }
        return body.count
    }

    /// Starts reading `body` from its first byte. Returns false if that is gone.
    mutating func begin(of body: inout ReplayBuffer) -> Bool {
        taken = 0
        state = .reading([])
        return body.beginReading()
    }

    /// Reads more of the body.
    mutating func read(_ body: inout ReplayBuffer) -> BodyProgress.Step {
        guard case .reading(var bytes) = state else { return .lost }
        // The only reference, so that appending copies nothing.
        state = .reading([])
        for _ in 0..<8 {
            let piece = body.readBytes(upTo: 16_384)
            guard body.canReplay, !body.isBroken, bytes.count + piece.count <= RequestInjections.bodyLimit else {
                return .lost
            }
            if piece.isEmpty {
                guard body.isExhausted else {
                    state = .reading(bytes)
                    return .needsInput
                }
                body.endReading()
                state = .read(bytes)
                return .done
            }
            bytes += piece
        }
        state = .reading(bytes)
        return .more
    }

    /// Ends with `body`, which has `values`.
    mutating func finish(_ body: Secret, by values: RequestInjections) {
        state = .changed(body, by: values)
        taken = 0
    }

    /// Restarts at the first byte.
    mutating func rewind() { taken = 0 }

    /// Copies the next bytes of the changed body into `space`, and returns their number; `nil` if nothing was changed.
    mutating func read(into space: UnsafeMutableRawBufferPointer) -> Int? {
        guard case .changed(let body, _) = state else { return nil }
        let start = taken
        let count = min(space.count, body.count - start)
        guard count > 0 else { return 0 }
        body.withBytes { bytes in
            unsafe bytes.extracting(start..<start + count).withUnsafeBytes { unsafe space.copyMemory(from: $0) }
        }
        taken += count
        return count
    }
}

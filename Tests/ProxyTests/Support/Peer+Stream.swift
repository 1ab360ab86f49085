// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import TestSupport

/// A long run of bytes of which each piece differs from every other, so that nothing lost, doubled or moved goes unseen.
struct Pattern {
    static let piece = 65_536
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// The next piece.
    mutating func next() -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: Self.piece) { buffer, count in
            unsafe UnsafeMutableRawBufferPointer(buffer).withMemoryRebound(to: UInt64.self) { words in
                for index in 0..<words.count {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    unsafe words[index] = state
                }
            }
            count = Self.piece
        }
    }
}

extension Peer {
    /// Sends a pattern of `size` bytes, a multiple of its piece, from a thread of its own.
    final class Stream: Sendable {
        private struct Carrier: @unchecked Sendable {
            // The thread only sends and whoever started it only receives: neither touches what the other changes.
            let peer: Peer
        }
        private let isDone = Signal()

        init(_ peer: Peer, seed: UInt64, size: Int) {
            let carrier = Carrier(peer: peer)
            inBackground { [self] in
                var pattern = Pattern(seed: seed)
                for _ in 0..<size / Pattern.piece {
                    guard (try? carrier.peer.send(pattern.next())) != nil else { break }
                }
                isDone.set()
            }
        }

        /// Whether all is sent or sending has failed.
        var isOver: Bool { isDone.isSet }

        /// Waits until all is sent or sending has failed.
        func join() { isDone.wait() }
    }

    /// Whether exactly that pattern comes next.
    func receives(seed: UInt64, size: Int) throws -> Bool {
        var pattern = Pattern(seed: seed)
        for _ in 0..<size / Pattern.piece where try read(count: Pattern.piece) != pattern.next() { return false }
        return true
    }
}

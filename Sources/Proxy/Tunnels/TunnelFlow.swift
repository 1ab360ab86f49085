// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPWire

/// One direction of a tunnel: bytes on their way from a source to a sink, and how far its end has come.
///
/// A value without I/O. It is filled only when it is empty: so what waits is never more than one window, which holds the
/// source back, and never moves in memory before it has gone (see `UpstreamConnection.send`).
package struct TunnelFlow: ~Copyable {
    /// The most that waits, in bytes.
    package static let window = 64 * 1024
    /// What an idle direction may keep of its memory, in bytes.
    package static let keptMemory = 4 * 1024

    /// What waits for the sink.
    package var bytes = ByteQueue()
    /// True if the source may have more: until it says that it has none.
    package var sourceIsReady = true
    /// True if the sink may take more: until it says that it does not.
    package var sinkIsReady = true
    /// True if the source has ended.
    package private(set) var hasEnded = false
    /// True if the sink was told so.
    package private(set) var endIsPassed = false
    /// How much to read at once: much only from a source that has much.
    package private(set) var appetite = Self.keptMemory

    /// A flow in which nothing waits.
    package init() {}

    /// True if the source is to be read.
    package var wantsSource: Bool { bytes.isEmpty && !hasEnded }
    /// True if the sink has to take something.
    package var wantsSink: Bool { !bytes.isEmpty }
    /// True if more can move without waiting.
    package var canMove: Bool {
        wantsSink ? sinkIsReady : !hasEnded && sourceIsReady
    }
    /// True if the end is due to be passed on: all that came before it has gone.
    package var owesEnd: Bool { hasEnded && bytes.isEmpty && !endIsPassed }

    /// The source gave `count` bytes of `asked`.
    package mutating func received(_ count: Int, of asked: Int) {
        appetite = count == asked ? Self.window : Self.keptMemory
    }

    /// The source has ended.
    package mutating func end() { hasEnded = true }

    /// The sink was told of the end.
    package mutating func passEnd() { endIsPassed = true }

    /// Gives memory back that an idle direction has no use for.
    package mutating func shrink() {
        if bytes.isEmpty { bytes.removeAll(keepingCapacity: appetite) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPWire

/// One direction of a tunnel: bytes on their way from a source to a sink, and the state of its end.
///
/// A value without I/O. The buffer is filled only when empty, so at most one window waits, and the bytes never move in memory
/// before they are sent (see `UpstreamConnection.send`).
package struct TunnelFlow: ~Copyable {
    /// The size of the buffer, in bytes.
    package static let window = 64 * 1024
    /// The memory that an idle direction may keep, in bytes.
    package static let keptMemory = 4 * 1024

    /// The bytes that wait for the sink.
    package var bytes = ByteQueue()
    /// True if the source may have more, until a read shows otherwise.
    package var sourceIsReady = true
    /// True if the sink may accept more, until a write shows otherwise.
    package var sinkIsReady = true
    /// True if the source has ended.
    package private(set) var hasEnded = false
    /// True if the end was passed to the sink.
    package private(set) var endIsPassed = false
    /// The number of bytes to read at once: large only for a source with much data.
    package private(set) var appetite = Self.keptMemory

    /// Makes an empty flow.
    package init() {}

    /// True if the source is to be read.
    package var wantsSource: Bool { bytes.isEmpty && !hasEnded }
    /// True if bytes wait for the sink.
    package var wantsSink: Bool { !bytes.isEmpty }
    /// True if more bytes can move without waiting.
    package var canMove: Bool {
        wantsSink ? sinkIsReady : !hasEnded && sourceIsReady
    }
    /// True if the end is to be passed on, because all bytes before it are gone.
    package var owesEnd: Bool { hasEnded && bytes.isEmpty && !endIsPassed }

    /// Records that the source gave `count` of `asked` bytes.
    package mutating func received(_ count: Int, of asked: Int) {
        appetite = count == asked ? Self.window : Self.keptMemory
    }

    /// Records the end of the source.
    package mutating func end() { hasEnded = true }

    /// Records that the end was passed to the sink.
    package mutating func passEnd() { endIsPassed = true }

    /// Releases memory that an idle direction does not need.
    package mutating func shrink() {
        if bytes.isEmpty { bytes.removeAll(keepingCapacity: appetite) }
    }
}

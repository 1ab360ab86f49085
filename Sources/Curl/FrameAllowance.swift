// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Allowance of one HTTP/2 session for received bytes that bring neither a field nor data.
///
/// A server may send PING, SETTINGS, WINDOW_UPDATE, PRIORITY, unknown frames, empty DATA, empty HEADERS and padding
/// without end: no window limits them, and libcurl reads a socket until it is empty. While the server sends faster than
/// the program reads, the thread would stand still.
///
/// Bytes of fields and data pay for themselves and their frame header, never for other bytes: a byte of data after each
/// megabyte of PINGs changes nothing. What is left has to fit into `capacity`, which recovers with time, so that
/// keep-alive PINGs may go on for days, and with bytes sent, because a server acknowledges an upload by WINDOW_UPDATEs.
package struct FrameAllowance: Sendable {
    /// Bytes received with no field or data in them, at most: 1 MiB, which takes a few milliseconds to read.
    package static let capacity = 1 << 20
    /// Bytes that recover in each millisecond: about 7,000 small frames per second for as long as the server likes.
    package static let recovery = 64
    /// Bytes that have to be sent for one received byte to be forgiven. Acknowledgements that the server provokes are as long as
    /// what provokes them, so they do not pay for it.
    package static let sentPerByte = 8
    /// Length of a frame's header (RFC 9113 §4.1).
    package static let frameHeader = 9

    /// Content of some received bytes, as libcurl was told.
    package struct Content: Sendable {
        /// Bytes of names and values of fields.
        package var fields = 0
        /// Bytes of data, with a frame header for each piece.
        package var data = 0

        /// Creates the content of bytes without any.
        package init() {}

        /// Adds a field.
        package mutating func addField(_ count: Int) { fields = Self.sum(fields, count) }

        /// Adds a piece of data, with the header of its frame.
        package mutating func addData(_ count: Int) {
            if count > 0 { data = Self.sum(data, Self.sum(count, FrameAllowance.frameHeader)) }
        }

        fileprivate static func sum(_ one: Int, _ other: Int) -> Int {
            let (sum, isTooLarge) = one.addingReportingOverflow(other)
            return isTooLarge ? .max : sum
        }
    }

    private var used = 0
    private var updatedAt: Int64 = 0
    /// True after the allowance was exceeded, for good.
    package private(set) var isExceeded = false

    /// Creates a full allowance.
    package init() {}

    /// Counts `count` received bytes with `content`, `now` in milliseconds. Returns false if that exceeds the allowance.
    package mutating func receive(_ count: Int, _ content: Content, at now: @autoclosure () -> Int64) -> Bool {
        guard !isExceeded else { return false }
        // A field may be shorter on the wire than it is (RFC 7541), and pays for these bytes only.
        let fields = content.fields == 0 ? 0 : Content.sum(min(content.fields, count), Self.frameHeader)
        let paid = Content.sum(fields, content.data)
        let empty = count - min(paid, .max - 1)
        // The usual case needs no clock.
        guard empty > 0 || used > 0 else { return true }
        recover(at: now())
        used = max(0, Content.sum(used, empty))
        isExceeded = used > Self.capacity
        return !isExceeded
    }

    /// Counts `count` sent bytes.
    package mutating func send(_ count: Int) {
        if used > 0 { used = max(0, used - count / Self.sentPerByte) }
    }

    private mutating func recover(at now: Int64) {
        // Also right for a difference that is too large for the type.
        let passed = now > updatedAt ? min(UInt64(bitPattern: now &- updatedAt), UInt64(Self.capacity)) : 0
        used = max(0, used - Int(passed) * Self.recovery)
        updatedAt = now
    }
}

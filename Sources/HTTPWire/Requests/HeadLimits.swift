// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How much of a message head, or of a trailer section, is read before the peer is refused.
public struct HeadLimits: Equatable, Sendable {
    /// Bytes of a request line without its CRLF; beyond it 414 (RFC 9112 section 3).
    public let line: Int
    /// Bytes of the whole head with every CRLF; beyond it 431 (RFC 6585 section 5).
    public let head: Int
    /// Field lines; beyond it 431.
    public let fieldCount: Int

    /// Limits, brought to what the parser can count: a head of 64 bytes to 16 MiB, a line no longer than the head.
    public init(line: Int = 8_192, head: Int = 65_536, fieldCount: Int = 100) {
        self.head = min(max(head, 64), 16_777_216)
        self.line = min(max(line, 16), self.head)
        self.fieldCount = min(max(fieldCount, 1), 65_536)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reads a binary format from its start; whatever is not there is `nil`.
struct ByteReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position == bytes.count }

    /// The next `count` bytes.
    mutating func take(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= bytes.count - position else { return nil }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    /// A big-endian number of at most four bytes.
    mutating func number(_ count: Int) -> Int? {
        take(count)?.reduce(0) { $0 << 8 | Int($1) }
    }

    /// A text after its length; `nil` also where it is no UTF-8.
    mutating func text(lengthBytes: Int) -> String? {
        guard let length = number(lengthBytes), let bytes = take(length) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Adds the low `bytes` bytes of `number`, big-endian.
    mutating func append(number: Int, bytes: Int) {
        for index in (0..<bytes).reversed() {
            append(UInt8(truncatingIfNeeded: number >> (8 * index)))
        }
    }
}

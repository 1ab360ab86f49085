// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Values in DER (X.690 §8.1), one after the other.
struct DERReader {
    static let sequence: UInt8 = 0x30

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// The next value with its tag and its length, as it stands; `nil` as for `next`.
    mutating func nextWhole() -> ArraySlice<UInt8>? {
        let before = rest
        guard next() != nil else { return nil }
        return before.prefix(before.count - rest.count)
    }

    /// The next value, or `nil` at the end and where the bytes are none.
    mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
        guard let tag = rest.popFirst(), tag & 0x1F != 0x1F, let first = rest.popFirst() else { return nil }
        var length = Int(first)
        if first >= 0x80 {
            guard (0x81...0x83).contains(first) else { return nil }
            length = 0
            for _ in 0..<first & 0x7F {
                guard let byte = rest.popFirst() else { return nil }
                length = length << 8 | Int(byte)
            }
        }
        guard length <= rest.count else { return nil }
        defer { rest = rest.dropFirst(length) }
        return (tag, rest.prefix(length))
    }
}

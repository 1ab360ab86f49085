// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// How many more times an OPTIONS request may be forwarded (RFC 9110 §7.6.2). With every other method but TRACE, which is
/// not served, the field may be ignored, and passes.
enum MaxForwards: Equatable {
    /// The field is not there, or means nothing with this method.
    case unlimited
    /// So many times; with 0 we are the one to answer.
    case left(UInt64)
    /// Repeated, or not a number: there is no telling who is to answer.
    case invalid

    /// What the request says.
    init(_ head: borrowing RequestHead, in bytes: Span<UInt8>) {
        self = .unlimited
        guard head.method == .options else { return }
        for line in head.fields where line.kind == .maxForwards {
            guard self == .unlimited, let number = Self.number(bytes, line.value) else {
                self = .invalid
                return
            }
            self = .left(number)
        }
    }

    /// The value to go on with, where there is one; a number beyond what we support becomes the greatest that we do.
    static func reduced(_ value: ByteRange, in bytes: Span<UInt8>) -> UInt64? {
        number(bytes, value).map { $0 &- min($0, 1) }
    }

    private static func number(_ bytes: Span<UInt8>, _ value: ByteRange) -> UInt64? {
        if let number = bytes.decimal(value) { return number }
        guard !value.isEmpty, value.end <= bytes.count else { return nil }
        for index in value.bounds where bytes[index] &- 0x30 > 9 { return nil }
        return .max
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Parameters of a query or of a form, `a=1&b=2`, as they are written.
enum ParameterList {
    /// Calls `body` with the bounds of each parameter of `range`, in order, except those named in `names`.
    ///
    /// Names are compared decoded, once and wholly, so that no spelling of a name escapes: `%61pi_key` and `%2561pi_key` are
    /// `api_key`, and `+` a space.
    static func forEach(
        _ bytes: Span<UInt8>, _ range: Range<Int>, without names: [[UInt8]], _ body: (Range<Int>, UInt8) -> Void
    ) {
        // An empty one has no name to compare: a form of nothing but separators takes no longer than others.
        forEach(
            bytes, range,
            dropping: { part in !part.isEmpty && names.contains { isNamed($0, bytes, part) } }, body)
    }

    /// Calls `body` with the bounds of each parameter of `range` and the separator before it, without dropped ones.
    ///
    /// Some servers separate at `;` as well. A parameter that has to be dropped by their reading is passed in pieces, without it.
    static func forEach(
        _ bytes: Span<UInt8>, _ range: Range<Int>, dropping isDropped: (Range<Int>) -> Bool,
        _ body: (Range<Int>, UInt8) -> Void
    ) {
        var start = range.lowerBound
        while start <= range.upperBound {
            let end = self.end(of: UInt8(ascii: "&"), bytes, start..<range.upperBound)
            if !isDropped(start..<end) { forEachPiece(bytes, start..<end, dropping: isDropped, body) }
            start = end + 1
        }
    }

    private static func forEachPiece(
        _ bytes: Span<UInt8>, _ parameter: Range<Int>, dropping isDropped: (Range<Int>) -> Bool,
        _ body: (Range<Int>, UInt8) -> Void
    ) {
        var separator = UInt8(ascii: "&")
        // Beginning of the pieces that have not been passed yet.
        var kept = parameter.lowerBound
        var start = kept
        while start <= parameter.upperBound {
            let end = self.end(of: UInt8(ascii: ";"), bytes, start..<parameter.upperBound)
            if start..<end != parameter, isDropped(start..<end) {
                if kept < start {
                    body(kept..<start - 1, separator)
                    separator = UInt8(ascii: ";")
                }
                kept = end + 1
            }
            start = end + 1
        }
        if kept <= parameter.upperBound { body(kept..<parameter.upperBound, separator) }
    }

    private static func end(of separator: UInt8, _ bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != separator { end += 1 }
        return end
    }

    /// Returns true if the parameter has that name.
    static func isNamed(_ name: [UInt8], _ bytes: Span<UInt8>, _ parameter: Range<Int>) -> Bool {
        isEqual(bytes, parameter.lowerBound..<endOfName(bytes, parameter), to: name.span)
    }

    /// Returns true if the parameter has that value.
    static func hasValue(_ value: Span<UInt8>, _ bytes: Span<UInt8>, _ parameter: Range<Int>) -> Bool {
        let end = endOfName(bytes, parameter)
        return isEqual(bytes, min(end + 1, parameter.upperBound)..<parameter.upperBound, to: value)
    }

    private static func endOfName(_ bytes: Span<UInt8>, _ parameter: Range<Int>) -> Int {
        end(of: UInt8(ascii: "="), bytes, parameter)
    }

    /// Returns true if `range`, decoded once or wholly, also from longer forms of UTF-8, has the same bytes as `wanted`.
    private static func isEqual(_ bytes: Span<UInt8>, _ range: Range<Int>, to wanted: Span<UInt8>) -> Bool {
        if isEqualDecodedOnce(bytes, range, to: wanted) { return true }
        // Every byte that is encoded twice takes five at least.
        guard range.count >= wanted.count + 4, range.contains(where: { bytes[$0] == UInt8(ascii: "%") }) else {
            return false
        }
        let decoded = PercentCoding.whollyDecoded(bytes, range, plusIsSpace: true)
        return isEqual(decoded, wanted) || isEqual(PercentCoding.withoutLongForms(decoded) ?? decoded, wanted)
    }

    private static func isEqual(_ bytes: [UInt8], _ wanted: Span<UInt8>) -> Bool {
        bytes.count == wanted.count && bytes.indices.allSatisfy { bytes[$0] == wanted[$0] }
    }

    private static func isEqualDecodedOnce(_ bytes: Span<UInt8>, _ range: Range<Int>, to wanted: Span<UInt8>) -> Bool {
        var index = range.lowerBound
        var position = 0
        while index < range.upperBound {
            guard position < wanted.count else { return false }
            var byte = bytes[index]
            if byte == UInt8(ascii: "+") {
                byte = UInt8(ascii: " ")
            } else if byte == UInt8(ascii: "%"), index + 2 < range.upperBound,
                let decoded = Hex.byte(bytes[index + 1], bytes[index + 2])
            {
                byte = decoded
                index += 2
            }
            guard byte == wanted[position] else { return false }
            index += 1
            position += 1
        }
        return position == wanted.count
    }
}

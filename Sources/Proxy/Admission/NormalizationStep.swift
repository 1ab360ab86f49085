// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// A step that servers take to normalize a path before the lookup. Each is linear in the path's length.
struct NormalizationStep {
    /// True if the step decodes all percent-encoded bytes, which may produce others to decode.
    let decodes: Bool
    /// Applies the step.
    let apply: @Sendable ([UInt8]) -> [UInt8]

    /// All steps, in no particular order.
    static let all = [
        NormalizationStep(decodes: false, apply: withoutParameters),
        NormalizationStep(decodes: false, apply: withBackslashesAsSlashes),
        NormalizationStep(decodes: false, apply: withSlashesMerged),
        NormalizationStep(decodes: false, apply: withDotSegmentsResolved),
        NormalizationStep(decodes: false, apply: endedAtQuery),
        NormalizationStep(decodes: false, apply: encoded),
        NormalizationStep(decodes: false) { decoded($0, where: ByteClass.unreserved.contains) },
        NormalizationStep(decodes: true) { decoded($0) { _ in true } },
        NormalizationStep(decodes: true) { decoded($0) { $0 != .slash } },
    ]

    /// Removes the parameters of each segment, from `;` to the next slash (RFC 3986 §3.3).
    static func withoutParameters(_ path: [UInt8]) -> [UInt8] {
        var isParameter = false
        return path.filter { byte in
            if byte == .slash { isParameter = false } else if byte == .semicolon { isParameter = true }
            return !isParameter
        }
    }

    /// Replaces backslashes by slashes, as on Windows.
    static func withBackslashesAsSlashes(_ path: [UInt8]) -> [UInt8] {
        path.map { $0 == .backslash ? .slash : $0 }
    }

    /// Merges consecutive slashes into one.
    static func withSlashesMerged(_ path: [UInt8]) -> [UInt8] {
        var previous: UInt8 = 0
        return path.filter { byte in
            defer { previous = byte }
            return byte != .slash || previous != .slash
        }
    }

    /// Removes dot segments (RFC 3986 §5.2.4); `..` may remove an empty segment.
    static func withDotSegmentsResolved(_ path: [UInt8]) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        let parts = path.split(separator: .slash, omittingEmptySubsequences: false)
        for (number, part) in parts.enumerated() {
            let isLast = number == parts.count - 1
            switch part.count {
            case 1 where part.first == .dot:
                if isLast { segments.append([]) }
            case 2 where part.allSatisfy { $0 == .dot }:
                // The first part is the empty one before the first slash.
                if segments.count > 1 { segments.removeLast() }
                if isLast { segments.append([]) }
            default:
                segments.append(part)
            }
        }
        return Array(segments.joined(separator: [.slash]))
    }

    /// Ends the path at an encoded `?` or `#`.
    static func endedAtQuery(_ path: [UInt8]) -> [UInt8] {
        Array(path.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
    }

    /// Encodes the characters that some clients leave unencoded: a route may be written with either.
    static func encoded(_ path: [UInt8]) -> [UInt8] {
        guard path.contains(where: \.isLeftUnencoded) else { return path }
        return path.flatMap { $0.isLeftUnencoded ? Hex.percentEncoded($0) : [$0] }
    }

    /// Decodes percent-encoded bytes once (RFC 3986 §2.1), if `isMeant` returns true for them.
    static func decoded(_ path: [UInt8], where isMeant: (UInt8) -> Bool) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(path.count)
        var index = 0
        while index < path.count {
            let byte = path[index]
            if byte == .percent, index + 2 < path.count, let decoded = Hex.byte(path[index + 1], path[index + 2]),
                isMeant(decoded)
            {
                result.append(decoded)
                index += 3
            } else {
                result.append(byte)
                index += 1
            }
        }
        return result
    }

    /// Returns true if a path contains a sequence that only some servers read as another character: NUL, which ends a
    /// string in C; `%uXXXX` of IIS; an ASCII character in overlong UTF-8.
    static func isObscure(_ path: [UInt8]) -> Bool {
        for (index, byte) in path.enumerated() {
            func follows(_ offset: Int, _ range: ClosedRange<UInt8>) -> Bool {
                index + offset < path.count && range.contains(path[index + offset])
            }
            switch byte {
            case 0: return true
            case .percent: if follows(1, 0x55...0x55) || follows(1, 0x75...0x75) { return true }
            case 0xC0, 0xC1: if follows(1, 0x80...0xBF) { return true }
            case 0xE0: if follows(1, 0x80...0x81), follows(2, 0x80...0xBF) { return true }
            case 0xF0: if follows(1, 0x80...0x80), follows(2, 0x80...0x81), follows(3, 0x80...0xBF) { return true }
            default: break
            }
        }
        return false
    }
}

extension UInt8 {
    static var backslash: UInt8 { UInt8(ascii: "\\") }
    static var dot: UInt8 { UInt8(ascii: ".") }
    static var percent: UInt8 { UInt8(ascii: "%") }
    static var semicolon: UInt8 { UInt8(ascii: ";") }
    static var slash: UInt8 { UInt8(ascii: "/") }

    /// True for characters of a caller's path that RFC 3986 requires to be encoded.
    fileprivate var isLeftUnencoded: Bool {
        ByteClass.callersPath.contains(self) && !ByteClass.path.contains(self)
    }
}

/// The paths that servers are known to make of one path, including the path itself.
///
/// Servers take the same steps, but each in its own order, and some of them twice or not at all: Tomcat strips parameters before
/// decoding, nginx decodes first and keeps them, IIS once decoded twice, Apache resolves dot segments before decoding slashes. So
/// the readings are the results of all orders of the steps, with at most two decodings.
enum NormalizedPaths {
    /// The limit of readings; a path with more is refused.
    private static let mostReadings = 128
    /// The limit of bytes that all steps together may read. A path that takes more is refused, because it would block the loop.
    private static let mostBytes = 1 << 20

    /// Returns true if every server reads the path as it is.
    static func isPlain(_ path: Span<UInt8>) -> Bool {
        var previous: UInt8 = 0
        for index in path.indices {
            let byte = path[index]
            switch byte {
            case .percent, .semicolon, .backslash: return false
            case let other where other.isLeftUnencoded: return false
            case .slash, .dot: if previous == .slash { return false }
            default: break
            }
            previous = byte
        }
        return true
    }

    /// Returns true if `condition` is met by every reading of `path`, including itself. Returns false if there are too
    /// many readings, or if one contains a sequence that servers read as another character: NUL, `%u002f`, or overlong
    /// UTF-8 (RFC 3629 §3).
    static func allSatisfy(_ path: [UInt8], _ condition: ([UInt8]) -> Bool) -> Bool {
        var seen: Set<[UInt8]> = [path]
        var bytesLeft = mostBytes
        var level = [path]
        for decodings in 0...2 {
            // A reading is first found after the fewest decodings.
            var next: [[UInt8]] = []
            while let reading = level.popLast() {
                guard !NormalizationStep.isObscure(reading), condition(reading) else { return false }
                for step in NormalizationStep.all where decodings < 2 || !step.decodes {
                    bytesLeft -= reading.count
                    guard bytesLeft > 0 else { return false }
                    let result = step.apply(reading)
                    guard result != reading, seen.insert(result).inserted else { continue }
                    guard seen.count <= mostReadings else { return false }
                    if step.decodes { next.append(result) } else { level.append(result) }
                }
            }
            level = next
        }
        return true
    }
}

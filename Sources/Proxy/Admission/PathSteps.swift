// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The steps that servers take with a path before they look up what it names. Each is linear in the path's length.
struct PathSteps {
    /// True if the step decodes percent-encoded bytes of all kinds, which may give others to decode.
    let decodes: Bool
    /// Takes the step.
    let apply: @Sendable ([UInt8]) -> [UInt8]

    /// All steps, in no particular order.
    static let all = [
        PathSteps(decodes: false, apply: withoutParameters),
        PathSteps(decodes: false, apply: withBackslashesAsSlashes),
        PathSteps(decodes: false, apply: withSlashesMerged),
        PathSteps(decodes: false, apply: withDotSegmentsResolved),
        PathSteps(decodes: false, apply: endedAtQuery),
        PathSteps(decodes: false) { decoded($0, where: isUnreserved) },
        PathSteps(decodes: true) { decoded($0) { _ in true } },
        PathSteps(decodes: true) { decoded($0) { $0 != .slash } },
    ]

    /// Drops the parameters of each segment, from its `;` to the next slash (RFC 3986 §3.3).
    static func withoutParameters(_ path: [UInt8]) -> [UInt8] {
        var isParameter = false
        return path.filter { byte in
            if byte == .slash { isParameter = false } else if byte == .semicolon { isParameter = true }
            return !isParameter
        }
    }

    /// Takes backslashes for slashes, as on Windows.
    static func withBackslashesAsSlashes(_ path: [UInt8]) -> [UInt8] {
        path.map { $0 == .backslash ? .slash : $0 }
    }

    /// Takes several slashes in a row for one.
    static func withSlashesMerged(_ path: [UInt8]) -> [UInt8] {
        var previous: UInt8 = 0
        return path.filter { byte in
            defer { previous = byte }
            return byte != .slash || previous != .slash
        }
    }

    /// Removes dot segments (RFC 3986 §5.2.4); an empty segment is one that `..` takes away.
    static func withDotSegmentsResolved(_ path: [UInt8]) -> [UInt8] {
        var segments: [ArraySlice<UInt8>] = []
        let parts = path.split(separator: .slash, omittingEmptySubsequences: false)
        for (number, part) in parts.enumerated() {
            let isLast = number == parts.count - 1
            switch part.count {
            case 1 where part.first == .dot:
                if isLast { segments.append([]) }
            case 2 where part.allSatisfy { $0 == .dot }:
                // The first part is what stands before the first slash: nothing.
                if segments.count > 1 { segments.removeLast() }
                if isLast { segments.append([]) }
            default:
                segments.append(part)
            }
        }
        return Array(segments.joined(separator: [.slash]))
    }

    /// Ends the path at a `?` or `#` that was encoded.
    static func endedAtQuery(_ path: [UInt8]) -> [UInt8] {
        Array(path.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
    }

    /// Decodes percent-encoded bytes once (RFC 3986 §2.1), those that `isMeant`.
    static func decoded(_ path: [UInt8], where isMeant: (UInt8) -> Bool) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(path.count)
        var index = 0
        while index < path.count {
            let byte = path[index]
            if byte == .percent, index + 2 < path.count, let high = path[index + 1].hexadecimal,
                let low = path[index + 2].hexadecimal, isMeant(high << 4 | low)
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(byte)
                index += 1
            }
        }
        return result
    }

    /// Bytes that mean the same encoded and decoded (RFC 3986 §2.3).
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
        default: false
        }
    }

    /// Returns whether a path holds what some servers take for a character that others do not see there: NUL, which ends a string
    /// in C; `%uXXXX` of IIS; and UTF-8 in more bytes than it takes, of an ASCII character.
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

    /// The value of a hexadecimal digit.
    fileprivate var hexadecimal: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}

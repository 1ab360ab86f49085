// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A path as the most willing of upstreams would read it.
enum PathReading {
    /// Percent-encoded bytes decoded (RFC 3986 §2.1), path parameters (`;x=1`) dropped, a backslash taken for a slash,
    /// double slashes taken for one, and dot segments removed (§5.2.4). The same as `path` for nearly every request.
    static func normalized(_ path: String) -> String {
        let bytes = Array(path.utf8)
        guard bytes.indices.contains(where: { isSuspicious(bytes, $0) }) else { return path }
        var segments: [[UInt8]] = []
        let parts = decoded(bytes).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        for part in parts {
            let segment = Array(part.prefix { $0 != UInt8(ascii: ";") })
            switch String(decoding: segment, as: UTF8.self) {
            case "", ".": continue
            case "..": _ = segments.popLast()
            default: segments.append(segment)
            }
        }
        let last = parts.last.map { String(decoding: $0.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) } ?? ""
        let endsInSlash = ["", ".", ".."].contains(last) && !segments.isEmpty
        let text = segments.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        return "/\(text)\(endsInSlash ? "/" : "")"
    }

    /// Whether the byte can make another reading.
    private static func isSuspicious(_ bytes: [UInt8], _ index: Int) -> Bool {
        switch bytes[index] {
        case UInt8(ascii: "%"), UInt8(ascii: ";"), UInt8(ascii: "\\"): return true
        case UInt8(ascii: "/"), UInt8(ascii: "."): return index > 0 && bytes[index - 1] == UInt8(ascii: "/")
        default: return false
        }
    }

    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            var byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < bytes.count, let high = value(bytes[index + 1]),
                let low = value(bytes[index + 2])
            {
                byte = high << 4 | low
                index += 2
            }
            result.append(byte == UInt8(ascii: "\\") ? UInt8(ascii: "/") : byte)
            index += 1
        }
        return result
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

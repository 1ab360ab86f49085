// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Canonical form of path and query that a signature covers, for all spellings that may be sent.
enum AWSCanonicalTarget {
    /// Appends the path of a request to `service`, `/` if it is empty, and its query, each with a line feed.
    static func write(_ target: Span<UInt8>, for service: AWSService, to text: inout SecretBuilder) {
        var mark = 0
        while mark < target.count, target[mark] != UInt8(ascii: "?") { mark += 1 }
        let path = target.extracting(first: mark)
        if isPlain(path) {
            text.append(path)
        } else {
            text.append(self.path(path.array[...], for: service).span)
        }
        text.append(UInt8(ascii: "\n"))
        if mark + 1 < target.count {
            text.append(query(target.extracting(droppingFirst: mark + 1).array[...]).span)
        }
        text.append(UInt8(ascii: "\n"))
    }

    private static let slash = UInt8(ascii: "/")
    private static let equals = UInt8(ascii: "=")

    /// Returns whether a path is its own canonical form for every service.
    private static func isPlain(_ path: Span<UInt8>) -> Bool {
        guard !path.isEmpty, path[0] == slash else { return false }
        for index in path.indices {
            let byte = path[index]
            // After a slash, a dot may begin a dot segment, and another slash ends an empty one.
            if index > 0, path[index - 1] == slash, byte == slash || byte == UInt8(ascii: ".") { return false }
            guard isUnreserved(byte) || byte == slash else { return false }
        }
        return true
    }

    private static func path(_ path: ArraySlice<UInt8>, for service: AWSService) -> [UInt8] {
        if path.isEmpty { return [slash] }
        // Any other service encodes the path as sent, including its percent signs.
        return service.isStore ? encoded(path, keeping: slash) : raw(normalized(path))
    }

    /// Returns the parameters in order of their names, then values.
    private static func query(_ query: ArraySlice<UInt8>) -> [UInt8] {
        var parameters = query.split(separator: UInt8(ascii: "&")).map { parameter in
            let mark = parameter.firstIndex(of: equals) ?? parameter.endIndex
            return (
                name: encoded(parameter[..<mark], keeping: nil, plusIsSpace: true),
                value: encoded(parameter[mark...].dropFirst(), keeping: nil, plusIsSpace: true)
            )
        }
        if parameters.count > 1 {
            parameters.sort {
                $0.name == $1.name
                    ? $0.value.lexicographicallyPrecedes($1.value) : $0.name.lexicographicallyPrecedes($1.name)
            }
        }
        var text: [UInt8] = []
        text.reserveCapacity(query.count + parameters.count)
        for parameter in parameters {
            if !text.isEmpty { text.append(UInt8(ascii: "&")) }
            text += parameter.name
            text.append(equals)
            text += parameter.value
        }
        return text
    }

    /// Returns `text` with all but the unreserved bytes of RFC 3986 §2.3 as `%XX`; encoded bytes are unchanged.
    private static func encoded(
        _ text: ArraySlice<UInt8>, keeping kept: UInt8?, plusIsSpace: Bool = false
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            index += 1
            if isUnreserved(byte) || byte == kept {
                bytes.append(byte)
            } else if byte == UInt8(ascii: "%"), index + 1 < text.endIndex,
                let decoded = Hex.byte(text[index], text[index + 1])
            {
                index += 2
                if isUnreserved(decoded) { bytes.append(decoded) } else { bytes += Hex.percentEncoded(decoded) }
            } else {
                bytes += Hex.percentEncoded(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return bytes
    }

    /// Returns a path with all but slashes and the unreserved bytes as `%XX`.
    private static func raw(_ path: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.count * 2)
        for byte in path {
            if isUnreserved(byte) || byte == slash { bytes.append(byte) } else { bytes += Hex.percentEncoded(byte) }
        }
        return bytes
    }

    /// Returns the path without empty and dot segments (RFC 3986 §5.2.4).
    private static func normalized(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var kept: [ArraySlice<UInt8>] = []
        for segment in path.split(separator: slash) where !segment.elementsEqual(".".utf8) {
            if segment.elementsEqual("..".utf8) { _ = kept.popLast() } else { kept.append(segment) }
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.count + 1)
        for segment in kept {
            bytes.append(slash)
            bytes += segment
        }
        if kept.isEmpty || path.last == slash { bytes.append(slash) }
        return bytes
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "~")
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Removes a session's values from the upstream's responses.
///
/// In addresses the injected path and parameters are left out, so that a caller who follows one gets them again, once.
/// Anywhere else each byte of a secret becomes an asterisk: lengths stay as they are.
package struct ResponseCleaner: Sendable {
    /// Length below which a secret is not searched for in texts: it would be found by accident.
    package static let shortest = 6
    /// Length above which a secret is not searched for in texts.
    package static let longest = 4096

    /// Kind of a field, according to the content of its value.
    package enum Kind: Sendable {
        /// One address: `Location`, `Content-Location`.
        case address
        /// Addresses in angle brackets: `Link` (RFC 8288 §3).
        case links
        /// Address after `url=`: `Refresh`.
        case refresh
        /// Path of a cookie: `Set-Cookie` (RFC 6265 §5.2.4).
        case cookie
        /// None.
        case other
    }

    private let parameters: [RequestInjections.Parameter]
    /// Injected path, decoded, without a slash at its end.
    private let path: Secret?
    private let searches: [SecretSearch]

    init(parameters: [RequestInjections.Parameter], path: Secret?, secrets: [Secret]) {
        self.parameters = parameters
        self.path = path.map { path in
            var bytes = FormEncoding.percentDecoded(path.revealBytes())
            return Secret(taking: &bytes)
        }
        var seen: [Secret] = []
        for secret in secrets
        where (Self.shortest...Self.longest).contains(secret.count) && !seen.contains(secret) { seen.append(secret) }
        searches = seen.flatMap { secret in TextCoding.needed(for: secret).map { SecretSearch(secret, $0) } }
    }

    /// Returns a cleaner for the body of one response.
    package func bodyCleaner() -> BodyCleaner { BodyCleaner(searches) }

    /// Returns true if `text` contains a secret.
    package func finds(in text: Span<UInt8>) -> Bool {
        let bytes = Array(copying: text)
        return searches.contains { search in
            var search = search
            return !search.read(bytes[...], isEnd: true).isEmpty
        }
    }

    /// Returns a field's value for the caller; nil if unchanged. `base` is the upstream's own path.
    package func cleaned(_ value: Span<UInt8>, _ kind: Kind, base: [UInt8]) -> [UInt8]? {
        let written = Array(copying: value)
        var text = written
        if !parameters.isEmpty || path != nil {
            switch kind {
            case .address: text = address(text[...], base)
            case .links: text = links(text, base)
            case .refresh: text = refresh(text, base)
            case .cookie: text = cookie(text, base)
            case .other: break
            }
        }
        for var search in searches {
            for range in search.read(text[...], isEnd: true) { mask(&text, range) }
        }
        return text == written ? nil : text
    }

    // MARK: Addresses

    /// Returns a reference (RFC 3986 §4.1) without the injected path and parameters.
    private func address(_ text: ArraySlice<UInt8>, _ base: [UInt8]) -> [UInt8] {
        let endOfPath = text.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? text.endIndex
        var result = localPath(text[..<endOfPath], base)
        guard endOfPath < text.endIndex, text[endOfPath] == UInt8(ascii: "?") else {
            return result + text[endOfPath...]
        }
        let endOfQuery = text[endOfPath...].firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
        let query = Array(text[endOfPath..<endOfQuery].dropFirst())
        let left = withoutParameters(query)
        if left == query || !left.isEmpty { result += [UInt8(ascii: "?")] + left }
        return result + text[endOfQuery...]
    }

    /// Returns the part of an address before its query, without the injected path.
    private func localPath(_ text: ArraySlice<UInt8>, _ base: [UInt8]) -> [UInt8] {
        guard let path, let start = Self.startOfPath(text), text[start...].starts(with: base) else {
            return Array(text)
        }
        let rest = text[start...].dropFirst(base.count)
        guard let end = Self.end(of: path, in: rest) else { return Array(text) }
        let left = rest[end...]
        guard left.isEmpty || left.first == UInt8(ascii: "/") else { return Array(text) }
        // The rest must not be read as a host (RFC 3986 §4.2): `/bot{token}//example.com` stays, and is masked.
        if start == text.startIndex, base.isEmpty, let second = left.dropFirst().first,
            second == UInt8(ascii: "/") || second == UInt8(ascii: "\\") || second < 0x21
        {
            return Array(text)
        }
        let local = Array(text[..<start]) + base + left
        return local.isEmpty || left.isEmpty && base.isEmpty ? local + [UInt8(ascii: "/")] : local
    }

    /// Returns the start of an address's path; nil for a reference that is relative to a page.
    private static func startOfPath(_ text: ArraySlice<UInt8>) -> Int? {
        guard let first = text.firstIndex(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ":") }) else {
            return nil
        }
        let start = text[first] == UInt8(ascii: ":") ? first + 1 : first
        guard text[first] == UInt8(ascii: ":") || first == text.startIndex else { return nil }
        guard text[start...].starts(with: "//".utf8) else { return first == start ? start : nil }
        return text[(start + 2)...].firstIndex(of: UInt8(ascii: "/"))
    }

    /// Returns the end of the secret in `text`, which begins with it, plain or percent-encoded.
    private static func end(of secret: Secret, in text: ArraySlice<UInt8>) -> Int? {
        secret.withBytes { wanted in
            var index = text.startIndex
            for position in wanted.indices {
                guard case .byte(let byte, let length) = TextCoding.percent.unit(text[index...]),
                    byte == wanted[position]
                else { return nil }
                index += length
            }
            return index
        }
    }

    private func withoutParameters(_ query: [UInt8]) -> [UInt8] {
        let bytes = query.span
        var kept: [UInt8] = []
        var isFirst = true
        ParameterList.forEach(
            bytes, 0..<bytes.count,
            dropping: { range in
                parameters.contains { parameter in
                    ParameterList.isNamed(parameter.name, bytes, range)
                        && parameter.value.withBytes { ParameterList.hasValue($0, bytes, range) }
                }
            },
            { range, separator in
                if !isFirst { kept.append(separator) }
                kept += query[range]
                isFirst = false
            })
        return kept
    }

    // MARK: Fields with addresses

    private func links(_ text: [UInt8], _ base: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var rest = text[...]
        while let start = rest.firstIndex(of: UInt8(ascii: "<")),
            let end = rest[start...].firstIndex(of: UInt8(ascii: ">"))
        {
            result += rest[...start] + address(rest[(start + 1)..<end], base)
            rest = rest[end...]
        }
        return result + rest
    }

    private func refresh(_ text: [UInt8], _ base: [UInt8]) -> [UInt8] {
        guard let start = Self.value(of: "url", in: text) else { return text }
        let quote = text[start...].first
        guard let quote, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return text[..<start] + address(text[start...], base)
        }
        let end = text[(start + 1)...].firstIndex(of: quote) ?? text.endIndex
        return text[...start] + address(text[(start + 1)..<end], base) + text[end...]
    }

    private func cookie(_ text: [UInt8], _ base: [UInt8]) -> [UInt8] {
        guard let first = text.firstIndex(of: UInt8(ascii: ";")),
            let start = Self.value(of: "path", in: text, from: first)
        else { return text }
        let end = text[start...].firstIndex { $0 == UInt8(ascii: ";") || $0.isBlank } ?? text.endIndex
        return text[..<start] + localPath(text[start..<end], base) + text[end...]
    }

    /// Returns the start of the value of `name=`, after a separator; nil if the name does not occur.
    private static func value(of name: StaticString, in text: [UInt8], from first: Int = 0) -> Int? {
        let name = Array(name.description.utf8)
        var index = first
        while index < text.count {
            while index < text.count,
                text[index].isBlank || text[index] == UInt8(ascii: ";") || text[index] == UInt8(ascii: ",")
            {
                index += 1
            }
            let word = text[index...].prefix(name.count)
            if word.count == name.count, word.elementsEqual(name, by: { $0.lowercased == $1 }) {
                var sign = index + name.count
                while sign < text.count, text[sign].isBlank { sign += 1 }
                if sign < text.count, text[sign] == UInt8(ascii: "=") {
                    sign += 1
                    while sign < text.count, text[sign].isBlank { sign += 1 }
                    return sign
                }
            }
            while index < text.count,
                !(text[index].isBlank || text[index] == UInt8(ascii: ";") || text[index] == UInt8(ascii: ","))
            {
                index += 1
            }
        }
        return nil
    }
}

/// Puts asterisks in place of `range`.
private func mask(_ text: inout [UInt8], _ range: Range<Int>) {
    for index in range where text.indices.contains(index) { text[index] = UInt8(ascii: "*") }
}

extension [UInt8] {
    fileprivate init(copying bytes: Span<UInt8>) {
        self = []
        reserveCapacity(bytes.count)
        for index in bytes.indices { append(bytes[index]) }
    }
}

/// Replaces secrets in the beginning of a response's body, which arrives in pieces of any size.
package struct BodyCleaner {
    /// Number of bytes that are read; later ones pass unchanged.
    package static let limit = 64 * 1024

    private var searches: [SecretSearch]
    /// Bytes that may be the beginning of a secret.
    private var held: [UInt8] = []
    /// Number of bytes before `held`.
    private var passed = 0

    fileprivate init(_ searches: [SecretSearch]) { self.searches = searches }

    /// True if bytes are held back.
    package var isHolding: Bool { !held.isEmpty }

    /// Returns the part of the body that can be passed on, after more of it has arrived. `isEnd`: no more follows.
    package mutating func clean(_ bytes: [UInt8], isEnd: Bool) -> [UInt8] {
        let room = max(0, Self.limit - passed - held.count)
        let read = bytes.prefix(room)
        let isLast = isEnd || read.count < bytes.count
        guard room > 0 || isLast else { return bytes }
        var text = held + read
        var open = text.count
        for index in searches.indices {
            for range in searches[index].read(read, isEnd: isLast) {
                // Matches never start before the held bytes.
                mask(&text, max(0, range.lowerBound - passed)..<max(0, range.upperBound - passed))
            }
            open = min(open, max(0, searches[index].openFrom - passed))
        }
        if isLast { open = text.count }
        held = Array(text[open...])
        passed += open
        return Array(text[..<open] + bytes[read.count...])
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reads one field of challenges:
///
///     #challenge
///     challenge  = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param = token BWS "=" BWS ( token / quoted-string )
///
/// Commas separate both challenges and parameters (RFC 9110 §11.6.1). A token before `=` is a parameter of the
/// challenge that is open; any other token begins a new challenge.
struct AuthenticationChallengeParser {
    /// No scheme has a third of that; each is compared with all before it, and a head can hold tens of thousands.
    private static let mostParameters = 64

    private let bytes: [UInt8]
    private var position = 0
    private var found: [AuthenticationChallenge] = []
    private var scheme: String?
    private var token68: String?
    private var parameters: [AuthenticationChallenge.Parameter] = []

    init(_ value: String) {
        bytes = Array(value.utf8)
    }

    mutating func challenges() throws(MalformedChallenge) -> [AuthenticationChallenge] {
        // Empty elements of a list are read over (RFC 9110 §5.6.1.2).
        while skipSeparators() {
            try element()
            skip(isWhiteSpace)
            guard position == bytes.count || current == comma else { throw malformed("a comma") }
        }
        close()
        return found
    }

    private mutating func element() throws(MalformedChallenge) {
        let start = position
        let name = take(isTokenByte)
        guard !name.isEmpty else { throw malformed("a scheme or a parameter") }
        let end = position
        skip(isWhiteSpace)
        if current == equals {
            guard scheme != nil, token68 == nil else { throw malformed("a scheme before a parameter", at: start) }
            return try parameter(name)
        }
        position = end
        close()
        scheme = name
        guard current == space else { return }
        skip { $0 == space }
        if let token = takeToken68() {
            token68 = token
            return
        }
        // The first parameter stands in the same element as its scheme.
        guard let next = current, next != comma else { return }
        let first = take(isTokenByte)
        guard !first.isEmpty else { throw malformed("a parameter") }
        skip(isWhiteSpace)
        guard current == equals else { throw malformed("= after a parameter's name") }
        try parameter(first)
    }

    /// What follows a parameter's name, from the `=` on.
    private mutating func parameter(_ name: String) throws(MalformedChallenge) {
        let name = name.lowercased()
        guard !parameters.contains(where: { $0.name == name }) else { throw malformed("each parameter only once") }
        guard parameters.count < Self.mostParameters else { throw malformed("fewer parameters") }
        position += 1
        skip(isWhiteSpace)
        let value = current == quote ? try quotedString() : take(isTokenByte)
        guard !value.isEmpty || bytes[position - 1] == quote else { throw malformed("a value") }
        parameters.append(.init(name: name, value: value))
    }

    private mutating func quotedString() throws(MalformedChallenge) -> String {
        var text: [UInt8] = []
        position += 1
        while let byte = current {
            position += 1
            switch byte {
            case quote:
                return TextRuns.broken(String(decoding: text, as: UTF8.self))
            case UInt8(ascii: "\\"):
                guard let escaped = current, isQuotable(escaped) else { throw malformed("a sign after \\") }
                text.append(escaped)
                position += 1
            case _ where isQuotable(byte):
                text.append(byte)
            default:
                throw malformed("no control sign")
            }
        }
        throw malformed("the closing quote")
    }

    /// token68 = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="; only if nothing else follows in the element.
    private mutating func takeToken68() -> String? {
        let start = position
        let text = take { isAlphanumeric($0) || "-._~+/".utf8.contains($0) }
        let padding = take { $0 == equals }
        let end = position
        skip(isWhiteSpace)
        guard !text.isEmpty, position == bytes.count || current == comma else {
            position = start
            return nil
        }
        position = end
        return text + padding
    }

    private mutating func close() {
        if let scheme { found.append(.init(scheme: scheme, token68: token68, parameters: parameters)) }
        scheme = nil
        token68 = nil
        parameters = []
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private func malformed(_ expected: String, at offset: Int? = nil) -> MalformedChallenge {
        MalformedChallenge(offset: offset ?? position, reason: "expected \(expected)")
    }

    /// Whether another element follows.
    private mutating func skipSeparators() -> Bool {
        skip { isWhiteSpace($0) || $0 == comma }
        return position < bytes.count
    }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while let byte = current, isSkipped(byte) { position += 1 }
    }

    private mutating func take(_ isTaken: (UInt8) -> Bool) -> String {
        let start = position
        skip(isTaken)
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}

private let comma = UInt8(ascii: ",")
private let equals = UInt8(ascii: "=")
private let quote = UInt8(ascii: "\"")
private let space = UInt8(ascii: " ")

private func isWhiteSpace(_ byte: UInt8) -> Bool { byte == space || byte == 0x09 }

private func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    default:
        false
    }
}

/// RFC 9110 §5.6.2.
private func isTokenByte(_ byte: UInt8) -> Bool { isAlphanumeric(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte) }

/// What may stand in a quoted string, escaped or (but for the quote and the backslash) plain (RFC 9110 §5.6.4).
private func isQuotable(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7F) }

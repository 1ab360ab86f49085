// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.3).
public struct AuthenticationChallenge: Sendable, Equatable {
    /// A parameter without its quoting.
    public struct Parameter: Sendable, Equatable {
        /// The name in lower case, since names are case-insensitive (RFC 9110 §11.2).
        public let name: String
        /// The value.
        public let value: String
    }

    /// The scheme as written.
    public let scheme: String
    /// The token68 sent instead of parameters (Negotiate's data), if any.
    public let token68: String?
    /// The parameters in order. No name occurs twice.
    public let parameters: [Parameter]

    /// Returns whether the scheme is `name`, ignoring case (RFC 9110 §11.1).
    public func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// The value of the parameter of that name, ignoring case.
    public subscript(parameter: String) -> String? {
        let name = parameter.lowercased()
        return parameters.first { $0.name == name }?.value
    }

    /// Parses all challenges of the fields, in order. Throws if a field violates the grammar, because half of a list of
    /// schemes could be its weaker half.
    public static func parse(_ fieldValues: [String]) throws(MalformedChallenge) -> [AuthenticationChallenge] {
        var challenges: [AuthenticationChallenge] = []
        for value in fieldValues {
            var parser = AuthenticationChallengeParser(value)
            challenges += try parser.challenges()
        }
        return challenges
    }
}

/// A `WWW-Authenticate` field that violates RFC 9110 §11.6.1.
public struct MalformedChallenge: Error, Sendable, Equatable {
    /// The number of bytes before the error.
    public let offset: Int
    /// The element that was expected there.
    public let reason: String
}

/// The parameters of `Authentication-Info` after an accepted answer (RFC 9110 §11.6.3, RFC 7615).
struct AuthenticationInfo {
    private let parameters: [AuthenticationChallenge.Parameter]

    /// Parses the fields. `nil` if their number is not one, or if the field is not a list of parameters.
    init?(_ fieldValues: [String]) {
        // The list is a challenge without its scheme.
        guard fieldValues.count == 1, let value = fieldValues.first,
            let challenges = try? AuthenticationChallenge.parse(["Info \(value)"]),
            challenges.count == 1, let info = challenges.first, info.token68 == nil
        else { return nil }
        parameters = info.parameters
    }

    /// The value of the parameter of that name, in lower case.
    subscript(parameter: String) -> String? { parameters.first { $0.name == parameter }?.value }
}

/// Parser of one field of challenges:
///
///     #challenge
///     challenge  = auth-scheme [ 1*SP ( token68 / #auth-param ) ]
///     auth-param = token BWS "=" BWS ( token / quoted-string )
///
/// Commas separate both challenges and parameters (RFC 9110 §11.6.1). A token before `=` is a parameter of the current
/// challenge; any other token begins a new challenge.
struct AuthenticationChallengeParser {
    /// Limit of parameters. Every scheme needs less than a third of them, each is compared with all before it, and a
    /// head can hold tens of thousands.
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
        // Empty list elements are skipped (RFC 9110 §5.6.1.2).
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
        let name = take(ByteClass.token.contains)
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
        // A tab, too, may precede a comma (RFC 9110 §5.6.1.1), but not a parameter.
        let first = position
        skip(isWhiteSpace)
        guard let next = current, next != comma else { return }
        position = first
        // The first parameter is in the same element as its scheme.
        let parameterName = take(ByteClass.token.contains)
        guard !parameterName.isEmpty else { throw malformed("a parameter") }
        skip(isWhiteSpace)
        guard current == equals else { throw malformed("= after a parameter's name") }
        try parameter(parameterName)
    }

    /// Parses a parameter from its `=` on.
    private mutating func parameter(_ name: String) throws(MalformedChallenge) {
        let name = name.lowercased()
        guard !parameters.contains(where: { $0.name == name }) else { throw malformed("each parameter only once") }
        guard parameters.count < Self.mostParameters else { throw malformed("fewer parameters") }
        position += 1
        skip(isWhiteSpace)
        let value = current == quote ? try quotedString() : take(ByteClass.token.contains)
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
                guard let escaped = current, isQuotable(escaped) else { throw malformed("a character after \\") }
                text.append(escaped)
                position += 1
            case _ where isQuotable(byte):
                text.append(byte)
            default:
                throw malformed("no control character")
            }
        }
        throw malformed("the closing quote")
    }

    /// Parses a token68, if nothing else follows in the element: 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/"
    /// ) *"=".
    private mutating func takeToken68() -> String? {
        let start = position
        let text = take { $0.isAlphanumeric || "-._~+/".utf8.contains($0) }
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

    /// Skips separators and returns whether another element follows.
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

/// Returns whether a quoted string may hold `byte` (RFC 9110 §5.6.4). The quote and the backslash must be escaped.
private func isQuotable(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7F) }

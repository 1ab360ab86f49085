// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Regular expression with one group, for a value in a page: `name="token" value="([^"]+)"`.
///
/// Literals, `.`, classes (`[a-f]`, `\d`, `\w`, `\s`), `(…)`, `(?:…)`, `|`, and `*`, `+`, `?`, `{m,n}`, each also
/// lazy. There are no back references and no assertions, so a search takes time in proportion to the text. Bytes are
/// compared, and case counts.
public struct PagePattern: Sendable, Hashable {
    /// Maximum number of bytes of a pattern.
    package static let longest = 1024

    /// The pattern as written.
    public let source: String
    private let program: PatternProgram

    /// Parses `source`, or throws the reason why it is not a pattern.
    public init(_ source: String) throws(PatternError) {
        guard source.utf8.count <= Self.longest else {
            throw PatternError(reason: "is longer than \(Self.longest) bytes")
        }
        var parser = PatternParser(source)
        self.source = source
        program = try PatternProgram(try parser.parse())
    }

    /// Returns the bytes that the group matches where the pattern first matches in `text`.
    ///
    /// Nil if it matches nowhere, or if the search of a text made for that takes too many steps.
    public func firstGroup(in text: [UInt8]) -> [UInt8]? {
        var search = PatternSearch(program)
        return search.firstGroup(in: text.span).map { Array(text[$0]) }
    }

    /// Compares patterns as written.
    public static func == (left: Self, right: Self) -> Bool { left.source == right.source }

    /// Hashes the pattern as written.
    public func hash(into hasher: inout Hasher) { hasher.combine(source) }
}

/// Reason why a text is not a pattern, in words that follow "the pattern".
public struct PatternError: Error, Sendable, Equatable {
    /// The reason.
    public let reason: String
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A set of scope words (RFC 6749 §3.3) in canonical order, usable as a key.
public struct Scope: Sendable, Hashable {
    /// The words, sorted and unique.
    public let words: [String]

    /// Creates a scope of `words`. Empty words and words with characters that are not allowed in a scope are dropped.
    public init(_ words: some Sequence<String>) {
        self.words = Set(words.filter(Self.isWord)).sorted()
    }

    /// Creates a scope of the words of `text`, separated by spaces.
    public init(text: some StringProtocol) {
        self.init(text.utf8.split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) })
    }

    /// The scope without words.
    public static let empty = Scope([])

    /// True if there are no words.
    public var isEmpty: Bool { words.isEmpty }

    /// Returns the words of both scopes.
    public func union(_ other: Scope) -> Scope { Scope(words + other.words) }

    /// Returns whether every word of `other` is in this scope.
    public func contains(_ other: Scope) -> Bool { Set(words).isSuperset(of: other.words) }

    /// True if the scope is short enough to accept from a resource: 32 words, 1 KiB. Keys, requests and log lines are
    /// made of it.
    package var isShort: Bool { Self.isShort(words) }

    /// Returns whether `words`, named by a response, are short enough for a scope.
    package static func isShort(_ words: [String]) -> Bool {
        words.count <= 32 && words.reduce(words.count) { $0 + $1.utf8.count } <= 1024
    }

    /// scope-token = 1*( %x21 / %x23-5B / %x5D-7E )
    private static func isWord(_ word: String) -> Bool {
        !word.isEmpty && word.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
    }
}

extension Scope: CustomStringConvertible {
    /// The words separated by one space, as requests and keys use them.
    public var description: String { words.joined(separator: " ") }
}

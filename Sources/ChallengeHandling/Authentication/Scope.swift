// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A set of scope words (RFC 6749 §3.3), in one canonical order so that it can be a key.
public struct Scope: Sendable, Hashable {
    /// The words, sorted, each once.
    public let words: [String]

    /// The scope of these words. Empty words, and words with signs that no scope may hold, are left out.
    public init(_ words: some Sequence<String>) {
        self.words = Set(words.filter(Self.isWord)).sorted()
    }

    /// The scope of the words of `text`, which spaces separate.
    public init(text: some StringProtocol) {
        self.init(text.utf8.split(separator: UInt8(ascii: " ")).map { String(decoding: $0, as: UTF8.self) })
    }

    /// No words.
    public static let empty = Scope([])

    /// Whether there are no words.
    public var isEmpty: Bool { words.isEmpty }

    /// The words of both.
    public func union(_ other: Scope) -> Scope { Scope(words + other.words) }

    /// Whether every word of `other` is in this scope.
    public func contains(_ other: Scope) -> Bool { Set(words).isSuperset(of: other.words) }

    /// True if it is short enough for what a resource names, of which keys, requests and lines of the log are made: 32 words, 1 KiB.
    package var isShort: Bool { Self.isShort(words) }

    /// The same of words that a response names.
    package static func isShort(_ words: [String]) -> Bool {
        words.count <= 32 && words.reduce(words.count) { $0 + $1.utf8.count } <= 1024
    }

    /// scope-token = 1*( %x21 / %x23-5B / %x5D-7E )
    private static func isWord(_ word: String) -> Bool {
        !word.isEmpty && word.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
    }
}

extension Scope: CustomStringConvertible {
    /// The words, one space between them: the form that requests and keys take.
    public var description: String { words.joined(separator: " ") }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Coding in which a text may contain a secret, in addition to the plain bytes.
enum TextCoding: Sendable, CaseIterable {
    /// None.
    case plain
    /// `%2F` (RFC 3986 §2.1).
    case percent
    /// Percent-encoding, with `+` for a space.
    case form
    /// `\/`, `\u003d` (RFC 8259 §7).
    case json
    /// `&amp;`, `&#61;`.
    case html

    /// Returns the codings in which `secret` may differ.
    static func needed(for secret: Secret) -> [TextCoding] {
        secret.withBytes { bytes in
            var codings: [TextCoding] = [.percent]
            var isPlain = true
            for index in bytes.indices {
                let byte = bytes[index]
                // Would be read as the beginning of an escape.
                if byte == UInt8(ascii: "%"), !codings.contains(.plain) { codings.append(.plain) }
                if byte == UInt8(ascii: " "), !codings.contains(.form) { codings.append(.form) }
                if !byte.isAlphanumeric, !".:_-".utf8.contains(byte) { isPlain = false }
            }
            return isPlain ? codings : codings + [.json, .html]
        }
    }

    /// Meaning of the first bytes of a text.
    enum Unit: Equatable {
        /// More bytes are needed to decide.
        case unfinished
        /// That byte, encoded by `length` bytes.
        case byte(UInt8, length: Int)
    }

    /// Longest escape in bytes.
    static let longest = 8

    /// Bytes that begin an escape; twice the same if there is only one.
    var escapes: (UInt8, UInt8) {
        switch self {
        case .plain: (0, 0)
        case .percent: (UInt8(ascii: "%"), UInt8(ascii: "%"))
        case .form: (UInt8(ascii: "%"), UInt8(ascii: "+"))
        case .json: (UInt8(ascii: "\\"), UInt8(ascii: "\\"))
        case .html: (UInt8(ascii: "&"), UInt8(ascii: "&"))
        }
    }

    /// Returns the meaning of the first bytes of `text`. An escape of a character outside ASCII is not decoded.
    func unit(_ text: ArraySlice<UInt8>) -> Unit {
        guard let first = text.first else { return .unfinished }
        let own = Unit.byte(first, length: 1)
        let rest = text.dropFirst()
        switch (self, first) {
        case (.form, UInt8(ascii: "+")): return .byte(UInt8(ascii: " "), length: 1)
        case (.percent, UInt8(ascii: "%")), (.form, UInt8(ascii: "%")):
            guard let high = rest.first else { return .unfinished }
            guard high.hexadecimalValue != nil else { return own }
            guard let low = rest.dropFirst().first else { return .unfinished }
            return Hex.byte(high, low).map { .byte($0, length: 3) } ?? own
        case (.json, UInt8(ascii: "\\")):
            guard let kind = rest.first else { return .unfinished }
            guard kind == UInt8(ascii: "u") else {
                return "\"\\/".utf8.contains(kind) ? .byte(kind, length: 2) : own
            }
            let digits = rest.dropFirst().prefix(4)
            guard digits.allSatisfy({ $0.hexadecimalValue != nil }) else { return own }
            guard digits.count == 4 else { return .unfinished }
            let number = digits.reduce(0) { $0 << 4 | Int($1.hexadecimalValue ?? 0) }
            return number < 0x80 ? .byte(UInt8(truncatingIfNeeded: number), length: 6) : own
        case (.html, UInt8(ascii: "&")):
            let name = rest.prefix(Self.longest - 1)
            guard let end = name.firstIndex(of: UInt8(ascii: ";")) else {
                return name.count < Self.longest - 1 ? .unfinished : own
            }
            let character = Self.character(String(decoding: name[..<end], as: UTF8.self))
            return character.map { .byte($0, length: end - text.startIndex + 1) } ?? own
        default: return own
        }
    }

    private static func character(_ name: String) -> UInt8? {
        switch name.lowercased() {
        case "amp": return UInt8(ascii: "&")
        case "lt": return UInt8(ascii: "<")
        case "gt": return UInt8(ascii: ">")
        case "quot": return UInt8(ascii: "\"")
        case "apos": return UInt8(ascii: "'")
        case let name where name.hasPrefix("#x"): return UInt8(name.dropFirst(2), radix: 16)
        case let name where name.hasPrefix("#"): return UInt8(name.dropFirst(), radix: 10)
        default: return nil
        }
    }
}

/// Search for one secret in a text that comes in pieces, in linear time (Knuth, Morris and Pratt).
struct SecretSearch {
    private let secret: Secret
    private let coding: TextCoding
    /// Length of the longest proper end of the first bytes that is also their beginning, for each number of bytes.
    private let borders: [Int]
    /// Number of bytes of the secret that the last units are.
    private var matched = 0
    /// Starts of the last units, as a ring of the secret's length.
    private var starts: [Int] = []
    private var next = 0
    /// Bytes that are the beginning of an escape, perhaps.
    private var pending: [UInt8] = []
    /// Position after `pending`.
    private var position = 0

    /// Creates a search; `secret` is not empty.
    init(_ secret: Secret, _ coding: TextCoding) {
        self.secret = secret
        self.coding = coding
        borders = secret.withBytes { bytes in
            var borders = Array(repeating: 0, count: bytes.count)
            var length = 0
            for index in 1..<max(1, bytes.count) {
                while length > 0, bytes[index] != bytes[length] { length = borders[length - 1] }
                if bytes[index] == bytes[length] { length += 1 }
                borders[index] = length
            }
            return borders
        }
    }

    /// Position from which the text may turn out to be the secret; the end of the read bytes if there is no partial
    /// match.
    var openFrom: Int {
        matched > 0 ? starts[(next + starts.count - matched) % starts.count] : position - pending.count
    }

    /// Reads more of the text. Returns the positions of the secret in the whole text so far. `isEnd`: no more follows.
    mutating func read(_ bytes: ArraySlice<UInt8>, isEnd: Bool) -> [Range<Int>] {
        let secret = secret
        return secret.withBytes { pattern in
            var found: [Range<Int>] = []
            guard !pattern.isEmpty else { return found }
            let (first, escapes) = (pattern[0], coding.escapes)
            var index = bytes.startIndex
            while index < bytes.endIndex {
                if pending.isEmpty, matched == 0 {
                    // Most bytes do not begin a match.
                    let start = index
                    while index < bytes.endIndex, bytes[index] != first, bytes[index] != escapes.0,
                        bytes[index] != escapes.1
                    {
                        index += 1
                    }
                    position += index - start
                    guard index < bytes.endIndex else { break }
                }
                let byte = bytes[index]
                index += 1
                position += 1
                if pending.isEmpty, byte != escapes.0, byte != escapes.1 {
                    take(byte, position - 1..<position, pattern, &found)
                } else {
                    pending.append(byte)
                    resolve(pattern, isEnd: false, &found)
                }
            }
            if isEnd { resolve(pattern, isEnd: true, &found) }
            return found
        }
    }

    /// Takes the units that are complete from `pending`.
    private mutating func resolve(_ pattern: Span<UInt8>, isEnd: Bool, _ found: inout [Range<Int>]) {
        while let first = pending.first {
            var (byte, length) = (first, 1)
            switch coding.unit(pending[...]) {
            case .byte(let decoded, let count): (byte, length) = (decoded, count)
            case .unfinished: guard isEnd else { return }
            }
            let start = position - pending.count
            pending.removeFirst(length)
            take(byte, start..<start + length, pattern, &found)
        }
    }

    private mutating func take(
        _ byte: UInt8, _ bounds: Range<Int>, _ pattern: Span<UInt8>, _ found: inout [Range<Int>]
    ) {
        if starts.isEmpty { starts = Array(repeating: 0, count: pattern.count) }
        starts[next] = bounds.lowerBound
        next = next + 1 < starts.count ? next + 1 : 0
        while matched > 0, byte != pattern[matched] { matched = borders[matched - 1] }
        guard byte == pattern[matched] else { return }
        matched += 1
        guard matched == pattern.count else { return }
        // All of the ring: its oldest entry is the one that is overwritten next.
        found.append(starts[next]..<bounds.upperBound)
        matched = 0
    }
}

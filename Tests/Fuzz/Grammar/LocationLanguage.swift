// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// Location patterns and locations, one of each in a line: by its derivation a pattern covers a location part by part, or not.
struct LocationLanguage: Language {
    static let name = "locations"

    var sentence = Sentence()
    private var isBroken = false
    private var covers = false
    private var middle = 0

    mutating func write() {
        isBroken = sentence.choices.once(in: 5)
        if isBroken {
            sentence.put(sentence.choices.pick(Self.broken))
            return
        }
        // The location's own parts; the pattern is made of them.
        let labels = (0...sentence.choices.below(3)).map { _ in sentence.choices.pick(Self.labels) }
        let segments = (0..<sentence.choices.below(4)).map { _ in sentence.choices.pick(Self.segments) }
        let port = sentence.choices.pick([80, 443, 8080] as [UInt64])
        let hasUser = sentence.choices.once(in: 6)
        covers = true
        writePatternUser(hasUser)
        writePatternHost(labels)
        writePatternPort(port)
        writePatternPath(segments)
        sentence.put("\n")
        middle = sentence.count
        if sentence.choices.once(in: 4), port != 8080 {
            // The scheme determines the port only.
            sentence.putInSomeCase(
                port == 80 ? (sentence.choices.flip() ? "http" : "ws") : sentence.choices.flip() ? "https" : "wss")
            sentence.put("://")
            if hasUser { sentence.put("ann:pw@") }
            put(labels)
        } else {
            if hasUser { sentence.put("ann:pw@") }
            put(labels)
            if port != 80 || sentence.choices.once(in: 4) {
                sentence.put(":")
                sentence.put(port)
            }
        }
        for segment in segments {
            sentence.put("/")
            put(segment, asWritten: sentence.choices.below(3))
        }
        if sentence.choices.once(in: 8) { sentence.put("/") }
        if sentence.choices.once(in: 8) { sentence.put("?a=*/b@c") }
    }

    private mutating func writePatternUser(_ hasUser: Bool) {
        switch sentence.choices.below(hasUser ? 5 : 12) {
        case 0:
            sentence.put("*@")
            covers = covers && hasUser
        case 1:
            sentence.put("ann:*@")
            covers = covers && hasUser
        case 2:
            sentence.put("%61nn:p%77@")
            covers = covers && hasUser
        case 3:
            sentence.put(hasUser ? "bob:pw@" : "@")
            if hasUser { covers = false }
        default: if hasUser { covers = false }
        }
    }

    private mutating func writePatternHost(_ labels: [StaticString]) {
        switch sentence.choices.below(5) {
        case 0: sentence.put("*")
        case 1:
            // The wildcard stands for one label or more.
            let count = sentence.choices.below(labels.count + 1)
            sentence.put("*.")
            let rest = Array(labels.dropFirst(count))
            if rest.isEmpty {
                sentence.put("zz")
                covers = false
            } else {
                put(rest)
                if count == 0 { covers = false }
            }
        case 2:
            sentence.put("zz.")
            put(labels)
            covers = false
        default: put(labels)
        }
    }

    private mutating func writePatternPort(_ port: UInt64) {
        switch sentence.choices.below(6) {
        case 0: sentence.put(":*")
        case 1:
            sentence.put(":81")
            covers = false
        default:
            if port != 80 || sentence.choices.flip() {
                sentence.put(":")
                sentence.put(port)
            }
        }
    }

    private mutating func writePatternPath(_ segments: [StaticString]) {
        switch sentence.choices.below(5) {
        case 0:
            let count = sentence.choices.below(segments.count + 1)
            for segment in segments.prefix(count) {
                sentence.put("/")
                put(segment, asWritten: sentence.choices.below(3))
            }
            sentence.put("/*")
            // `/*` is every path but the empty one.
            if segments.isEmpty { covers = false }
        case 1:
            for segment in segments {
                sentence.put("/")
                put(segment, asWritten: 0)
            }
            sentence.put("/zz")
            covers = false
        default:
            for segment in segments {
                sentence.put("/")
                put(segment, asWritten: sentence.choices.below(3))
            }
            if sentence.choices.once(in: 4) { sentence.put("/") }
        }
    }

    private mutating func put(_ labels: [StaticString]) {
        for (index, label) in labels.enumerated() {
            if index > 0 { sentence.put(".") }
            sentence.putInSomeCase(label)
        }
        if sentence.choices.once(in: 12) { sentence.put(".") }
    }

    /// Puts a segment, with its first character as it is or percent-encoded, which means the same for these characters.
    private mutating func put(_ segment: StaticString, asWritten form: Int) {
        let start = sentence.count
        sentence.put(segment)
        guard form > 0, let first = sentence.bytes[start...].first, first < 0x7F, first != UInt8(ascii: "%") else {
            return
        }
        let rest = sentence.bytes[(start + 1)...]
        sentence.cut(to: start)
        sentence.put("%")
        sentence.put(UInt64(first), radix: 16, isUpper: form == 1)
        sentence.put(rest)
    }

    func check() throws(Violation) {
        if isBroken {
            let pattern = try? LocationPattern(String(decoding: sentence.bytes, as: UTF8.self))
            return try require(pattern == nil, "what is no pattern is read as \(pattern?.text ?? "")")
        }
        let (first, second) = (
            String(decoding: sentence.bytes[..<(middle - 1)], as: UTF8.self),
            String(decoding: sentence.bytes[middle...], as: UTF8.self)
        )
        guard let pattern = try? LocationPattern(first), let location = try? Location(second) else {
            throw Violation(description: "\(first) or \(second) is refused")
        }
        try require(pattern.covers(location) == covers, "\(first) covers \(second): \(!covers)")
        let again = try? LocationPattern(pattern.text)
        try require(again == pattern, "\(first) is written as \(pattern.text)")
    }

    private static let labels: [StaticString] = ["a", "b", "www", "bank", "example", "x-y", "0", "a_b"]
    private static let segments: [StaticString] = [
        "a", "b", "admin", "x.html", "~u", "%2F", "%C3%A9", "a;b", "-", "0", "%25",
    ]
    private static let broken: [StaticString] = [
        "", ":80", "/a", "a..b", ".a", "a*", "*a.b", "a.*", "a.*.b", "**", "*.*", "*.[::1]", "[::1", "[::1]x", "[x]",
        "[]", "a:0", "a:65536", "a:x", "a:**", "a/*/b",
        "a/*/*", "a//b", "ftp://a", "javascript://a", "*:pw@a", "*:*@a", "u@v@a", "a b", "a\\b", "a<b", "\u{E9}",
        "a/\u{E9}", "a\"", "a\0", "a:-1", "a:+80", "http://",
        "http:///a", "a,b", "a%41", "u@", "@", "a:80:80", "//a", "a..",
    ]
}

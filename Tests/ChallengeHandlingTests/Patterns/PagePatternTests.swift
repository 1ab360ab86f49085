// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@Suite("Regular expressions for values in pages")
struct PagePatternTests {
    private func group(_ pattern: String, _ text: String) throws -> String? {
        try PagePattern(pattern).firstGroup(in: Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "the group of the first match is the value",
        arguments: [
            (#"name="csrf" value="([^"]+)""#, #"<input name="csrf" value="t1"><input name="csrf" value="t2">"#, "t1"),
            (#""nonce":"(\w+)""#, #"{"a":1,"nonce":"0af3"}"#, "0af3"), (#"nonce=(\d{3})"#, "nonce=12 nonce=345", "345"),
            (#"(a|ab)c"#, "abc", "ab"), (#"<(.+)>"#, "<a><b>", "a><b"), (#"<(.+?)>"#, "<a><b>", "a"),
            (#"x(?:yz){2,}(.)"#, "xyz xyzyz!", "!"), (#"(\S+)\s+end"#, "a b\tend", "b"),
            (#"([a-fA-F\d-]+)$?"#, "", nil),
            (#"t=(\.[^;\]]*)"#, "t=.a]b", ".a"), (#"()x"#, "x", ""), (#"ü=(.)"#, "ü=7", "7"), (#"a(b*)"#, "caab", ""),
            (#"(\$\^)"#, "a$^", "$^"), (#"[^]a](.)"#, "]ab]x", "]"),
        ] as [(String, String, String?)])
    func value(pattern: String, text: String, expected: String?) throws {
        if expected == nil {
            #expect(throws: PatternError.self) { try PagePattern(pattern) }
        } else {
            #expect(try group(pattern, text) == expected)
        }
    }

    @Test("there is no value where the pattern matches by a branch without the group")
    func branch() throws {
        for (pattern, text) in [("a|b(c)", "xabc"), ("(?:a|b(c))d", "ad bcd"), ("|(a)", "a")] {
            #expect(try group(pattern, text) == nil, "\(pattern)")
        }
        #expect(try group("a|b(c)", "xbca") == "c")
    }

    @Test("there is no value where the pattern matches nowhere")
    func nothing() throws {
        #expect(try group("a(b)c", "abab ac") == nil)
        #expect(try group("a(b)", "") == nil)
        // A dot is any byte but the end of a line.
        #expect(try group("a(.)", "a\n") == nil)
    }

    @Test(
        "a pattern that could mean something else is refused, with the reason",
        arguments: [
            ("abc", "one group"), ("(a)(b)", "2 groups"), ("(a", "without a )"), ("a)", "without a ("),
            ("([a)", "without a ]"),
            ("(a)+", "repeats the group"), ("*(a)", "repeats nothing"), ("(a**)", "repeats a repetition"),
            ("^(a)", "not supported"), ("(?=a)(b)", "not supported"), (#"(\b)"#, "not supported"),
            (#"(a)\1"#, "not supported"),
            ("(a{2,1})", "less at most"), ("(a{1001})", "more than 1000"), ("(a{x})", "{m,n}"), ("([z-a])", "range"),
            ("((?:a{999}){999})", "too many"), (#"(a)\"#, "ends with"),
            (String(repeating: "(?:", count: 20), "nested"), (String(repeating: "a", count: 1025), "longer than"),
        ])
    func refused(pattern: String, reason: String) throws {
        let error = #expect(throws: PatternError.self) { try PagePattern(pattern) }
        #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    }

    @Test(
        "a page made to hurt ends the search without a value",
        arguments: ["(?:a|a|a)*(b)", "(?:a*)*(b)", "a.*a.*a.*(b)", "(a{1,900})b", "(?:(?:a?){20}){20}(b)"])
    func hostile(pattern: String) throws {
        let page = [UInt8](repeating: UInt8(ascii: "a"), count: 1024 * 1024)
        #expect(try PagePattern(pattern).firstGroup(in: page) == nil)
    }

    @Test("a value at the end of a page of 1 MiB is found")
    func long() throws {
        let page =
            Array(String(repeating: "<p class=\"nonce\">\n", count: 60_000).utf8) + Array("\"nonce\":\"ab12\"".utf8)
        #expect(try PagePattern(#""nonce":"(\w+)""#).firstGroup(in: page) == Array("ab12".utf8))
    }

    @Test("groups are those that the standard library finds, for generated patterns and texts")
    func comparison() throws {
        var random = SplitMix(state: 2026)
        var found = 0
        for _ in 0..<3000 {
            let pattern =
                Self.pattern(depth: 2, &random) + "(" + Self.pattern(depth: 2, &random) + ")"
                + Self.pattern(depth: 1, &random)
            let text = String(
                (0..<Int.random(in: 0..<12, using: &random)).map { _ in "abc".randomElement(using: &random) ?? "a" })
            let regex = try Regex(pattern).matchingSemantics(.unicodeScalar)
            let expected = text.firstMatch(of: regex).flatMap { $0.output[1].substring.map(String.init) }
            #expect(try group(pattern, text) == expected, "\(pattern) in \(text)")
            if expected != nil { found += 1 }
        }
        #expect(found > 500)
    }

    /// Returns a pattern without groups, which repeats single bytes only.
    private static func pattern(depth: Int, _ random: inout SplitMix) -> String {
        let atoms = ["a", "b", "c", ".", "[ab]", "[^a]"]
        let signs = ["", "", "*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}"]
        func piece() -> String {
            (atoms.randomElement(using: &random) ?? "a") + (signs.randomElement(using: &random) ?? "")
        }
        guard depth > 0 else { return piece() }
        return switch Int.random(in: 0..<3, using: &random) {
        case 0: pattern(depth: depth - 1, &random) + piece()
        case 1: "(?:\(pattern(depth: depth - 1, &random))|\(piece()))"
        default: piece()
        }
    }
}

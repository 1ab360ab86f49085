// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("JSON texts of other programs")
struct JSONParserTests {
    private func parsed(_ text: String) -> JSONValue? { JSONValue(parsing: Array(text.utf8)) }

    @Test(
        "a text that is not JSON by RFC 8259 is refused",
        arguments: [
            "", " ", "nul", "tru", "True", "nan", "Infinity", "01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "1 2",
            "[1,]",
            "[,1]", "[1 2]", "[", "]", "[}", "{", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:2}", "'a'",
            "\"a",
            "\"\\x\"", "\"\\u12\"", "\"\\u12G4\"", "\"\\", "\"\\u00", "\"a\u{1}b\"", "\"a\nb\"", "\u{A0}1", "/* */1",
            "1//",
        ])
    func malformed(text: String) {
        #expect(parsed(text) == nil)
    }

    @Test(
        "white space, escapes and a byte order mark are parsed by RFC 8259",
        arguments: [
            (" [ 1 ,\t2\r\n] ", [1, 2]), ("\u{FEFF}{\"a\" : null}", ["a": nil]), ("{}", [:]), ("[]", []),
            (#""\u00e9\uD83D\ude00\"\\\/\b\f\n\r\t\u0000""#, .string("é😀\"\\/\u{8}\u{C}\n\r\t\0")),
            (#"{"\u0061":{"b":[true,false,"x"]}}"#, ["a": ["b": [true, false, "x"]]]),
        ] as [(String, JSONValue)])
    func read(text: String, value: JSONValue) {
        #expect(parsed(text) == value)
    }

    @Test("a JSON object with a duplicate name is refused, however the name is written")
    func twice() {
        #expect(parsed(#"{"a":1,"b":{"a":2}}"#) != nil)
        #expect(parsed(#"{"a":1,"a":1}"#) == nil)
        #expect(parsed(#"{"access_token":"x","access\u005ftoken":"y"}"#) == nil)
        // Swift strings are equal if their canonical forms are.
        #expect(parsed(#"{"\u00e9":1,"e\u0301":2}"#) == nil)
    }

    @Test("JSON with invalid UTF-8 or an unpaired surrogate is refused")
    func encoding() {
        for bytes: [UInt8] in [[0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0xF4, 0x90, 0x80, 0x80]] {
            #expect(JSONValue(parsing: [0x22] + bytes + [0x22]) == nil)
        }
        for text in [#""\ud83d""#, #""\ude00""#, #""\ud83d\ud83d""#, #""\ud83dx""#, #""\ud83d\n""#, #""\ud83d\u""#] {
            #expect(parsed(text) == nil)
        }
    }

    @Test("JSON numbers are exact or a Double, and larger ones are refused")
    func numbers() {
        #expect(parsed("9223372036854775807") == .integer(.max) && parsed("-9223372036854775808") == .integer(.min))
        #expect(parsed("1e400") == nil && parsed("-1e400") == nil && parsed("1e-400") == .integer(0))
        #expect(parsed("1" + String(repeating: "0", count: 1500)) == nil)
        #expect(parsed("0." + String(repeating: "3", count: 900)) == .double(1 / 3.0))
    }

    @Test("a JSON text is limited to a depth of 32, 10,000 values and 64 KiB")
    func limits() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(parsed(nested(32)) != nil && parsed(nested(33)) == nil)
        #expect(parsed(String(repeating: #"{"a":"#, count: 33) + "1" + String(repeating: "}", count: 33)) == nil)
        func list(_ count: Int) -> String { "[" + Array(repeating: "1", count: count).joined(separator: ",") + "]" }
        #expect(parsed(list(9_999)) != nil && parsed(list(10_000)) == nil)
        func string(_ count: Int) -> String { "\"" + String(repeating: "a", count: count) + "\"" }
        #expect(parsed(string(65_534)) != nil && parsed(string(65_535)) == nil)
        #expect(JSONValue(parsing: Array(list(20_000).utf8), within: .local) != nil)
        #expect(parsed("{" + string(256) + ":1}") != nil && parsed("{" + string(257) + ":1}") == nil)
    }

    @Test("a JSON text with long runs of combining marks is refused, since comparing it takes long")
    func marks() {
        let run = String(repeating: "\u{300}\u{316}", count: 15)
        #expect(parsed("\"a\(run)\"") != nil)
        #expect(parsed("\"a\(run)\u{300}\"") == nil)
        #expect(parsed("\"a" + String(repeating: "\\u0300", count: 31) + "\"") == nil)
    }
}

@Suite("JSON values")
struct JSONValueTests {
    @Test(
        "a number that is whole in 64 bits is an integer, however it is written",
        arguments: [
            ("1", 1), ("1.0", 1), ("1e3", 1000), ("-0.0", 0), ("9223372036854775807", .max),
            // A double of this size has no fraction.
            ("92203685477222077.0290100", 92_203_685_477_222_080),
        ] as [(String, Int64)])
    func whole(_ text: String, _ number: Int64) {
        #expect(JSONValue(parsing: Array(text.utf8)) == .integer(number))
    }

    @Test(
        "a number with a fraction or beyond 64 bits is not an integer",
        arguments: ["1.5", "-1e-3", "1e300", "9223372036854775808"])
    func broken(_ text: String) throws {
        let value = try #require(JSONValue(parsing: Array(text.utf8)))
        guard case .double = value else {
            Issue.record("\(text) is \(value)")
            return
        }
        #expect(value.integerValue == nil && JSONValue(parsing: value.serialized()) == value)
    }
}

@Suite("JSON pointers")
struct JSONPointerTests {
    /// RFC 6901 section 5.
    private static let example = #"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, " ": 7, "m~n": 8}"#

    @Test(
        "a JSON pointer finds values as in RFC 6901 §5",
        arguments: [
            ("/foo/0", "bar"), ("/foo/1", "baz"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3), ("/ ", 7),
            ("/m~0n", 8),
        ] as [(String, JSONValue)])
    func found(text: String, value: JSONValue) throws {
        let json = try #require(JSONValue(parsing: Array(Self.example.utf8)))
        let pointer = try #require(JSONPointer(text))
        #expect(pointer.value(in: json) == value && pointer.source == text)
    }

    @Test(
        "a JSON pointer to a missing value finds none",
        arguments: [
            "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/-1", "/foo/99999999999999999999", "/bar", "/foo/0/x", "//",
        ])
    func missing(text: String) throws {
        let json = try #require(JSONValue(parsing: Array(Self.example.utf8)))
        #expect(try #require(JSONPointer(text)).value(in: json) == nil)
    }

    @Test("a malformed JSON pointer is refused", arguments: ["", "foo", "a/b", "/a~", "/a~2b", "#/foo", "$.foo"])
    func malformed(text: String) { #expect(JSONPointer(text) == nil) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("values")
struct ValueTests {
    @Test(
        "JSON is read and written",
        arguments: [
            "{}", "[]", "null", "true", "-1", "0", "[1,2.5,\"a\"]", "{\"a\":{\"b\":[null]},\"c\":\"\"}",
            "\"\\\"\\\\\\n\\r\\t\\u0001é😀\"", "9223372036854775807",
        ])
    func json(text: String) {
        #expect(JSON(parsing: Array(text.utf8))?.text == text)
    }

    @Test("escapes are understood")
    func escapes() {
        let text = "\"\\u00e9\\ud83d\\ude00\\/\\b\""
        #expect(JSON(parsing: Array(text.utf8)) == "é😀/\u{8}")
    }

    @Test(
        "what is no JSON is refused",
        arguments: [
            "", "{", "{\"a\":1,}", "[1,]", "01", "-", "1.", "1e", "nul", "'a'", "\"a", "\"\\x\"", "\"\\ud800\"",
            "{\"a\":1,\"a\":2}", "1 2", "\"\n\"", "{a:1}", String(repeating: "[", count: 100_000),
        ])
    func notJSON(text: String) {
        #expect(JSON(parsing: Array(text.utf8)) == nil)
    }

    @Test("both alphabets of base64, padded and not", arguments: 0..<9)
    func base64(count: Int) {
        let bytes = (0..<count).map { UInt8(255 - $0 * 5) }
        #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        #expect(Base64.decode(Base64.encodeURL(bytes)) == bytes)
        #expect(Base64.encode(bytes).utf8.count % 4 == 0)
    }

    @Test("base64 of the standard's examples, and what is none")
    func base64Examples() {
        #expect(Base64.encode(Array("foobar".utf8)) == "Zm9vYmFy")
        #expect(Base64.encode(Array("fooba".utf8)) == "Zm9vYmE=")
        #expect(Base64.encodeURL([0xfb, 0xff]) == "-_8")
        for text in ["a", "a=b=", "ab===", "a b", "é"] { #expect(Base64.decode(text) == nil) }
    }

    @Test("form fields")
    func form() {
        let fields = FormFields(parsing: "a=1+2&b=%C3%A9%3D&c&d=1&d=2".utf8)
        #expect(fields["a"] == "1 2")
        #expect(fields["b"] == "é=")
        #expect(fields["c"] == "")
        #expect(fields["d"] == nil)
        #expect(fields.isWellFormed)
        #expect(!FormFields(parsing: "a=%zz".utf8).isWellFormed)
        #expect(!FormFields(parsing: "a=%ff".utf8).isWellFormed)
        #expect(percentEncoded("a b/é~") == "a%20b%2F%C3%A9~")
    }

    @Test("dates as HTTP writes them")
    func dates() {
        #expect(httpDate(784_111_777_000) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(httpDate(0) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(httpDate(1_709_164_800_999) == "Thu, 29 Feb 2024 00:00:00 GMT")
    }
}

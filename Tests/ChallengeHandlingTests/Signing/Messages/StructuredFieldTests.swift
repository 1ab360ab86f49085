// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Structured fields")
struct StructuredFieldTests {
    @Test(
        "a dictionary is written in its strict form",
        arguments: [
            ("", ""), ("a", "a"), ("a=?1", "a"), ("a;x;y=?0", "a;x;y=?0"),
            ("  a=1 ,\tb=2;x=1;y=2,   c=(a   b   c)  ", "a=1, b=2;x=1;y=2, c=(a b c)"),
            ("a=1, b=2, a=3", "a=3, b=2"), ("a;x=1;x=2", "a;x=2"), ("a=();q", "a=();q"),
            (
                "sig=(\"@method\" \"x\";key=\"a\\\"b\");created;nonce=\"n\"",
                "sig=(\"@method\" \"x\";key=\"a\\\"b\");created;nonce=\"n\""
            ),
            ("a=:aGk=:, b=*t/x:y, *c-._*=-1.50", "a=:aGk=:, b=*t/x:y, *c-._*=-1.5"),
            ("a=0.100, b=-0.001, c=123456789012.999, d=1.0", "a=0.1, b=-0.001, c=123456789012.999, d=1.0"),
            ("a=-999999999999999, b=00", "a=-999999999999999, b=0"), ("a=1;  x", "a=1;x"),
        ])
    func dictionaries(text: String, written: String) throws {
        let read = try #require(StructuredFieldParser.dictionary(Array(text.utf8)))
        #expect(StructuredFieldWriter.text(of: read) == written)
        let again = try #require(StructuredFieldParser.dictionary(Array(written.utf8)))
        #expect(again.map(\.key) == read.map(\.key) && again.map(\.member) == read.map(\.member))
    }

    @Test(
        "a text that is no dictionary is refused as a whole",
        arguments: [
            "a=", "a=1,", ",a", "A=1", "a=1 b=2", "a=(1", "a=(1,2)", "a=(1\t2)", "a=(1\"x\")", "a=\"x", "a=\"\u{E9}\"",
            "a=\"\\n\"", "a=\"\\", "a=:a:", "a=:YQ==", "a=:Y-_=:", "a=1234567890123456", "a=1.", "a=1.1234", "a=.5",
            "a=1234567890123.1", "a=-", "a=?2", "a=?", "a=@1", "a;=1", "a=1;B", "a=1 ;x", "a=((1))", "\u{0}a", "a=1\n",
        ])
    func malformed(text: String) {
        let read = StructuredFieldParser.dictionary(Array(text.utf8))?.map(\.key)
        #expect(read == nil)
    }

    @Test("lists and items are read and written")
    func others() throws {
        let list = try #require(StructuredFieldParser.list(Array("a,  (b  c);d , \"e\"".utf8)))
        #expect(StructuredFieldWriter.text(of: list) == "a, (b c);d, \"e\"")
        let item = try #require(StructuredFieldParser.item(Array(" text/html;charset=utf-8 ".utf8)))
        #expect(item.value == .token("text/html") && item.parameters["charset"] == .token("utf-8"))
        for text in ["a b", "a,b", "", "(a)"] {
            #expect(StructuredFieldParser.item(Array(text.utf8)) == nil, "\(text)")
        }
        for text in ["a,", "a b", "(a"] { #expect(StructuredFieldParser.list(Array(text.utf8)) == nil, "\(text)") }
    }

    @Test("a dictionary of one repeated key, and one of many keys, are read in one pass")
    func many() throws {
        let repeated = Array((0..<20_000).map { "a=\($0)" }.joined(separator: ",").utf8)
        let one = try #require(StructuredFieldParser.dictionary(repeated))
        #expect(one.count == 1 && one.first?.member == .item(StructuredItem(.integer(19_999))))
        let parameters = Array(("a" + (0..<20_000).map { ";p\($0)" }.joined()).utf8)
        let item = try #require(StructuredFieldParser.dictionary(parameters)?.first?.member)
        guard case .item(let item) = item else { return #expect(Bool(false)) }
        #expect(item.parameters.all.count == 20_000)
    }
}

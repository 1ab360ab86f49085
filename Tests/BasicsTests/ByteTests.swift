// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

/// Expects `set` to hold exactly the characters of `spelled`, which lists them as the grammar does.
private func expectSet(
    _ set: ByteClass, _ spelled: String, sourceLocation: SourceLocation = #_sourceLocation
) {
    let expected = Set(spelled.utf8)
    for byte in UInt8.min...UInt8.max {
        #expect(set.contains(byte) == expected.contains(byte), "\(byte)", sourceLocation: sourceLocation)
    }
}

private let alphanumerics = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

@Test("the sets of bytes are those of the grammar")
func byteClasses() {
    expectSet(.token, alphanumerics + "!#$%&'*+-.^_`|~")
    expectSet(.path, alphanumerics + "-._~!$&'()*+,;=:@/")
    expectSet(.callersPath, alphanumerics + "-._~!$&'()*+,;=:@/[]{}|^`")
    expectSet(.callersQuery, alphanumerics + "-._~!$&'()*+,;=:@/[]{}|^`?%\"<>")
    expectSet(.unreserved, alphanumerics + "-._~")
    let visible = String(decoding: (0x21...0x7E) as ClosedRange<UInt8>, as: UTF8.self)
    expectSet(.quotedText, "\t " + visible.filter { $0 != "\"" && $0 != "\\" })
}

@Test("single bytes are classified by the grammar")
func singleBytes() {
    for byte in UInt8.min...UInt8.max {
        let character = Character(UnicodeScalar(byte))
        let isASCII = byte < 0x80
        #expect(byte.isDigit == (isASCII && character.isNumber))
        #expect(byte.isBlank == (byte == 0x20 || byte == 0x09))
        #expect(byte.isFieldValue == (byte == 0x09 || (byte >= 0x20 && byte != 0x7F)))
        #expect(byte.isAlphanumeric == (isASCII && (character.isNumber || character.isLetter)))
        #expect(byte.hexadecimalValue == (isASCII ? character.hexDigitValue.map(UInt8.init) : nil))
        #expect(byte.lowercased == (isASCII ? Array(character.lowercased().utf8)[0] : byte))
    }
}

@Test(
    "a token is one byte of its set or more",
    arguments: [("GET", true), ("a", true), ("", false), ("a b", false), ("é", false)])
func tokens(text: String, isToken: Bool) {
    #expect(text.utf8.isToken == isToken)
}

@Suite("Hexadecimal digits")
struct HexTests {
    @Test("each byte is two digits, and is read back in either case")
    func bytes() {
        let all = Array(UInt8.min...UInt8.max)
        let text = Hex.encode(all)
        #expect(text.utf8.count == 512 && text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
        #expect(Hex.decode(text) == all && Hex.decode(text.uppercased()) == all)
        #expect(Hex.encode([]) == "" && Hex.decode("") == [])
    }

    @Test(
        "a text that is not a sequence of pairs of hexadecimal digits is not read",
        arguments: ["a", "abc", "+f", "0x", " 0", "g0", "0g", "\u{FF11}\u{FF11}"])
    func malformed(text: String) {
        #expect(Hex.decode(text) == nil)
    }

    @Test("a number has as many digits as its type")
    func numbers() {
        #expect(Hex.encode(UInt8(7)) == "07" && Hex.encode(UInt16(0)) == "0000")
        #expect(Hex.encode(UInt32(0xDEAD)) == "0000dead" && Hex.encode(UInt64.max) == "ffffffffffffffff")
    }

    @Test("a byte needs two hexadecimal digits")
    func pairs() {
        #expect(Hex.byte(UInt8(ascii: "f"), UInt8(ascii: "0")) == 0xF0)
        #expect(Hex.byte(UInt8(ascii: "f"), nil) == nil && Hex.byte(nil, UInt8(ascii: "f")) == nil)
        #expect(Hex.byte(UInt8(ascii: "+"), UInt8(ascii: "f")) == nil)
        #expect(Hex.percentEncoded(0x2F) == Array("%2F".utf8))
    }
}

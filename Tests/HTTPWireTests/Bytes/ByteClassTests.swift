// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import HTTPWire

/// The set as the grammar spells it, to compare the words with.
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
    expectSet(.query, alphanumerics + "-._~!$&'()*+,;=:@/[]{}|^`")
    expectSet(.unreserved, alphanumerics + "-._~")
    let visible = String(decoding: (0x21...0x7E) as ClosedRange<UInt8>, as: UTF8.self)
    expectSet(.quotedText, "\t " + visible.filter { $0 != "\"" && $0 != "\\" })
}

@Test("single bytes are told apart")
func singleBytes() {
    for byte in UInt8.min...UInt8.max {
        let character = Character(UnicodeScalar(byte))
        let isASCII = byte < 0x80
        #expect(byte.isDigit == (isASCII && character.isNumber))
        #expect(byte.isBlank == (byte == 0x20 || byte == 0x09))
        #expect(byte.isFieldValue == (byte == 0x09 || (byte >= 0x20 && byte != 0x7F)))
        #expect(byte.hexadecimalValue == (isASCII ? character.hexDigitValue.map(UInt8.init) : nil))
        #expect(byte.lowercased == (isASCII ? Array(character.lowercased().utf8)[0] : byte))
    }
}

@Test("a byte that no field value may hold is found at every place beside every other byte")
func fieldValues() {
    for byte in UInt8.min...UInt8.max {
        for filler: UInt8 in [0x20, 0x21, 0x7E, 0x80, 0xFF, 0x09] {
            for position in 0..<19 {
                var bytes = [UInt8](repeating: filler, count: 19)
                bytes[position] = byte
                let accepted = bytes.span.isFieldValue(from: 0, to: 19)
                guard accepted != byte.isFieldValue else { continue }
                Issue.record("\(byte) at \(position) among \(filler)")
            }
        }
    }
    let bytes: [UInt8] = [0, 65, 0]
    let inside = bytes.span.isFieldValue(from: 1, to: 2)
    let beyond = bytes.span.isFieldValue(from: 1, to: 4)
    #expect(inside && !beyond)
}

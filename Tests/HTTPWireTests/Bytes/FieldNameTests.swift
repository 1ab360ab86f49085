// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import HTTPWire
import Testing

private func kind(_ name: String) -> FieldName {
    let bytes = latin1(name)
    return FieldName(bytes.span, ByteRange(start: 0, end: bytes.count))
}

/// `setCookie` as `set-cookie`.
private func spelling(_ name: FieldName) -> String {
    String(describing: name).map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined()
}

@Test("every known field is found by its name in any case", arguments: FieldName.allCases.filter { $0 != .other })
func knownNames(_ name: FieldName) {
    let text = spelling(name)
    #expect(kind(text) == name)
    #expect(kind(text.uppercased()) == name)
    #expect(kind(text + "x") == .other || kind(text + "x") != name)
    #expect(kind(String(text.dropLast())) != name)
    #expect(kind(text.replacingLastLetter()) != name)
    #expect(kind(text.split(separator: "-").joined(separator: "_")) == (text.contains("-") ? .other : name))
}

@Test("an unknown field name is other")
func unknownNames() {
    for name in ["", "x", "hosts", "hos", "content-lengths", "x-request-id", "contentlength", "\u{E9}ge", "ag\u{5}"] {
        #expect(kind(name) == .other, "\(name)")
    }
}

extension String {
    fileprivate func replacingLastLetter() -> String { dropLast() + "~" }
}

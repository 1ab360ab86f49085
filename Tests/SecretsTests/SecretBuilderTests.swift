// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@Suite("Secrets put together")
struct SecretBuilderTests {
    @Test("a SecretBuilder keeps the order of its pieces")
    func order() {
        var builder = SecretBuilder(capacity: 1)
        builder.append("ann")
        builder.append(UInt8(ascii: ":"))
        builder.append(Secret("pässword"))
        builder.append([0x00, 0xFF])
        #expect(builder.count == 15)
        #expect(builder.finish().revealBytes() == Array("ann:pässword".utf8) + [0, 0xFF])
    }

    @Test("a SecretBuilder grows beyond its initial capacity")
    func growth() {
        var builder = SecretBuilder(capacity: 0)
        let piece = Secret((0..<100).map { UInt8($0) })
        for _ in 0..<1000 { builder.append(piece) }
        let whole = builder.finish().revealBytes()
        #expect(whole.count == 100_000)
        #expect(whole.suffix(100).elementsEqual(0..<100))
    }

    @Test("a SecretBuilder that was emptied has no former bytes")
    func anew() {
        var builder = SecretBuilder(capacity: 4)
        builder.append("a long password")
        builder.removeAll()
        #expect(builder.count == 0 && builder.withBytes { $0.isEmpty })
        builder.append([1, 2, 3].span)
        builder.append([UInt8]().span)
        #expect(builder.withBytes { [$0[0], $0[1], $0[2]] } == [1, 2, 3])
        #expect(builder.finish().revealBytes() == [1, 2, 3])
    }

    @Test("a SecretBuilder without pieces makes an empty secret")
    func empty() {
        #expect(SecretBuilder().finish().isEmpty)
        #expect(Secret.joining([]).isEmpty)
    }

    @Test("joining secrets keeps their order")
    func joining() {
        #expect(Secret.joining([Secret("a"), Secret(""), Secret("bc")]) == Secret("abc"))
    }

    // RFC 4648 §10.
    @Test(
        "the base64 of a secret matches the test vectors of RFC 4648",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ])
    func base64(plain: String, encoded: String) {
        #expect(Secret(plain).base64().revealText() == encoded)
        #expect(Secret(plain).base64(.url).revealText() == encoded.filter { $0 != "=" })
    }

    @Test("the two base64 alphabets differ in their last two digits")
    func alphabets() {
        let secret = Secret([0xFB, 0xFF, 0xBF])
        #expect(secret.base64().revealText() == "+/+/")
        #expect(secret.base64(.url).revealText() == "-_-_")
    }
}

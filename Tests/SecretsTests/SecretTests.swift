// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import Secrets

@Suite("A secret")
struct SecretTests {
    private let secret = Secret("hunter2")

    struct Account {
        var name = "ann"
        var password: Secret
        var spare: Secret?
    }

    struct Refusal: Error {
        var secret: Secret
    }

    @Test("a secret prints as <redacted>")
    func printsRedacted() {
        #expect("\(secret)" == "<redacted>")
        #expect(secret.description == "<redacted>")
        #expect(secret.debugDescription == "<redacted>")
        #expect(String(reflecting: secret) == "<redacted>")
    }

    @Test("a secret inside another value prints as <redacted>")
    func printsRedactedInside() {
        let account = Account(password: secret, spare: secret)
        let texts = [
            "\(Optional(secret) as Any)", "\([secret])", "\(["password": secret])", "\(account)",
            String(reflecting: account), "\(Refusal(secret: secret))", "\(Result<Secret, Refusal>.success(secret))",
            "\(Result<Secret, Refusal>.failure(Refusal(secret: secret)))",
        ]
        for text in texts {
            #expect(text.contains("<redacted>"))
            #expect(!text.contains("hunter2"))
        }
    }

    @Test("a secret dumps nothing, even inside another value")
    func dumpsNothing() {
        var text = ""
        dump(secret, to: &text)
        dump(Account(password: secret, spare: secret), to: &text)
        #expect(text.contains("<redacted>"))
        #expect(!text.contains("hunter2"))
        // The bytes as numbers, and the memory they are in.
        #expect(!text.contains("104"))
        #expect(!text.contains("0x"))
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("a secret equals only a secret with the same bytes")
    func equality() {
        #expect(secret == Secret("hunter2"))
        #expect(secret != Secret("hunter3"))
        #expect(secret != Secret("hunter"))
        #expect(secret != Secret("Hunter2"))
        #expect(Secret("") == Secret([UInt8]()))
    }

    @Test("a secret returns its bytes unchanged, including zero bytes and invalid UTF-8")
    func reveals() {
        let bytes: [UInt8] = [0, 0xFF, 0x41, 0]
        let secret = Secret(bytes)
        #expect(secret.count == 4)
        #expect(!secret.isEmpty)
        #expect(secret.revealBytes() == bytes)
        #expect(secret.revealText() == "\0\u{FFFD}A\0")
        #expect(Secret("").isEmpty)
        #expect(Secret("").revealBytes() == [])
    }

    @Test("a secret taken from an array leaves no bytes in the array")
    func taking() {
        var bytes = Array("hunter2".utf8)
        let secret = Secret(taking: &bytes)
        #expect(bytes == [])
        #expect(secret == self.secret)
        var empty: [UInt8] = []
        #expect(Secret(taking: &empty).isEmpty)
    }
}

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

@Suite("The memory of secrets")
struct SecretMemoryTests {
    /// Returns the VmFlags of the mapping that holds `address`, from /proc/self/smaps (proc(5)).
    private func flags(of address: UInt) throws -> [Substring] {
        let file = unsafe try #require(unsafe fopen("/proc/self/smaps", "re"))
        defer { unsafe fclose(file) }
        var isInside = false
        var buffer = [CChar](repeating: 0, count: 8192)
        while unsafe fgets(&buffer, Int32(buffer.count), file) != nil {
            let line = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if line.hasPrefix("VmFlags:"), isInside { return line.split(whereSeparator: \.isWhitespace) }
            let ends = (line.split(separator: " ").first ?? "").split(separator: "-")
            if ends.count == 2, let start = UInt(ends[0], radix: 16), let end = UInt(ends[1], radix: 16) {
                isInside = start <= address && address < end
            }
        }
        return []
    }

    @Test(
        "secrets are excluded from core dumps, and from swap if allowed", arguments: [0, 1, 16, 4096, 4097, 100_000])
    func flags(count: Int) throws {
        let secret = Secret([UInt8](repeating: 7, count: count))
        let address = secret.withBytes { bytes in unsafe bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        let flags = try flags(of: address)
        #expect(flags.contains("dd"), "\(flags)")
        #expect(secret.count == count)
        // Sanitizers make mlock(2) a no-op.
        guard unsafe getenv("COUNTERSIGN_SANITIZER") == nil else { return }
        let limits = unsafe try #require(unsafe fopen("/proc/self/limits", "re"))
        defer { unsafe fclose(limits) }
        var line = [CChar](repeating: 0, count: 256)
        while unsafe fgets(&line, 256, limits) != nil {
            let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(
                separator: " ")
            guard words.starts(with: ["Max", "locked", "memory"]), words.count > 3 else { continue }
            // With a small limit the other tests may have used it up.
            if words[3] == "unlimited" || Int(words[3]).map({ $0 >= 8 << 20 }) == true {
                #expect(flags.contains("lo"), "\(flags)")
            }
        }
    }

    @Test("the memory of a released secret is zero when it is allocated again")
    func zeroed() {
        for size in [1, 32, 33, 64, 1000, 4096] {
            for _ in 0..<300 {
                let start = unsafe SecretMemory.allocate(size)
                for index in 0..<size {
                    #expect(unsafe start[index] == 0)
                    unsafe start[index] = 0xAA
                }
                unsafe SecretMemory.release(start, size)
            }
        }
    }

    @Test("the memory of a secret is not allocated twice, even on many threads at once")
    func apart() async {
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    var held: [(secret: Secret, byte: UInt8)] = []
                    for round in 0..<400 {
                        let byte = UInt8(truncatingIfNeeded: task * 31 + round)
                        held.append((Secret([UInt8](repeating: byte, count: 1 + round * 17 % 5000)), byte))
                        if round % 3 == 2 { held.removeFirst(2) }
                    }
                    for (secret, byte) in held {
                        #expect(secret.revealBytes().allSatisfy { $0 == byte })
                    }
                }
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import HTTPWire
import Secrets
import Testing

@testable import Proxy

@Suite("Tokens of callers")
struct CallerTokenTests {
    private static let (first, second) = ("0123456789abcdef", "fedcba9876543210-and-more")

    private func tokens(_ values: [String: String]) -> CallerTokens {
        let tokens = CallerTokens()
        for (name, value) in values { tokens.set(Secret(value), of: name) }
        return tokens
    }

    private func caller(_ presented: String, _ tokens: CallerTokens, of names: [String] = ["ci", "backup"]) -> String? {
        let bytes = Array(presented.utf8)
        guard case .token(let name)? = tokens.table(of: names).caller(presenting: bytes.span) else { return nil }
        return name
    }

    @Test("a token names its caller, and nothing else does: no part of it, nothing longer, no other letter")
    func compared() {
        let tokens = tokens(["ci": Self.first, "backup": Self.second])
        #expect(caller(Self.first, tokens) == "ci")
        #expect(caller(Self.second, tokens) == "backup")
        for token in [Self.first, Self.second] {
            let bytes = Array(token.utf8)
            for length in 0..<bytes.count {
                #expect(caller(String(decoding: bytes.prefix(length), as: UTF8.self), tokens) == nil)
            }
            for index in bytes.indices {
                for bit in 0..<8 {
                    var changed = bytes
                    changed[index] ^= 1 << UInt8(bit)
                    let table = tokens.table(of: ["ci", "backup"])
                    #expect(table.caller(presenting: changed.span) == nil)
                }
            }
        }
        for longer in [Self.first + "\0", Self.first + "x", Self.first + Self.second, Self.second + "\0\0"] {
            #expect(caller(longer, tokens) == nil)
        }
        // As long as the buffer for a token, and longer.
        for count in [4095, 4096, 4097, 8192] {
            let zeros = [UInt8](repeating: 0, count: count - Self.first.utf8.count)
            let padded = Array(Self.first.utf8) + zeros
            #expect(tokens.table(of: ["ci"]).caller(presenting: padded.span) == nil)
        }
    }

    @Test("a token of the greatest length is compared to its last byte")
    func longest() {
        let token = [UInt8](repeating: UInt8(ascii: "a"), count: 4096)
        let tokens = CallerTokens()
        tokens.set(Secret(token), of: "ci")
        let table = tokens.table(of: ["ci"])
        #expect(table.caller(presenting: token.span) == .token("ci"))
        var other = token
        other[4095] = UInt8(ascii: "b")
        #expect(table.caller(presenting: other.span) == nil)
    }

    @Test("before a token is known no value is accepted, not even an empty one")
    func unknown() {
        #expect(caller("", CallerTokens()) == nil)
        #expect(caller(Self.first, CallerTokens()) == nil)
        #expect(!CallerTokens().table(of: ["ci"]).isComplete)
        let tokens = tokens(["ci": Self.first])
        #expect(caller(Self.first, tokens, of: ["backup"]) == nil)
        #expect(!tokens.table(of: ["ci", "backup"]).isComplete)
        #expect(tokens.table(of: ["ci"]).isComplete)
    }

    @Test("two callers with one token are both unknown, for nobody can tell them apart")
    func shared() {
        let tokens = tokens(["ci": Self.first, "backup": Self.first, "third": Self.second])
        #expect(caller(Self.first, tokens, of: ["ci", "backup", "third"]) == nil)
        #expect(caller(Self.second, tokens, of: ["ci", "backup", "third"]) == "third")
        #expect(!tokens.table(of: ["ci", "backup"]).isComplete)
        #expect(caller(Self.first, tokens, of: ["ci"]) == nil)
        #expect(tokens.ambiguous == ["ci", "backup"])
        tokens.set(nil, of: "backup")
        #expect(caller(Self.first, tokens, of: ["ci"]) == "ci" && tokens.ambiguous.isEmpty)
    }

    @Test("of 2,000 tokens at most one is compared with what a caller presents")
    func constant() {
        let names = (0..<2000).map { "caller-\($0)" }
        let tokens = CallerTokens()
        for name in names { tokens.set(Secret("token of \(name)-0123456789"), of: name) }
        let table = tokens.table(of: names)
        #expect(table.isComplete)
        for number in [0, 1, 999, 1999] {
            let right = Array("token of caller-\(number)-0123456789".utf8)
            #expect(table.caller(presenting: right.span) == .token("caller-\(number)"))
            #expect(table.comparisons(with: right.span) == 1)
            #expect(table.comparisons(with: Array(right.dropLast()).span) == 0)
        }
    }

    @Test("tokens are ambiguous while another caller has the same one, however that comes about")
    func ambiguity() {
        let tokens = tokens(["a": Self.first, "b": Self.first, "c": Self.first, "d": Self.second])
        #expect(tokens.ambiguous == ["a", "b", "c"])
        tokens.set(Secret(Self.second), of: "a")
        #expect(tokens.ambiguous == ["a", "b", "c", "d"])
        tokens.set(nil, of: "b")
        #expect(tokens.ambiguous == ["a", "d"])
        #expect(caller(Self.first, tokens, of: ["a", "c", "d"]) == "c")
        tokens.set(Secret(Self.first), of: "d")
        #expect(tokens.ambiguous == ["c", "d"])
        tokens.keep(["c"])
        #expect(tokens.ambiguous.isEmpty && tokens.known == ["c"])
    }

    @Test("a worker's copy is renewed by a change and by nothing else")
    func renewed() {
        let tokens = tokens(["ci": Self.first])
        let rule = CallerTokenRule(field: CallerField("Authorization"), credentials: ["ci"], tokens: tokens)
        var snapshot = CallerTokenSnapshot()
        let version = snapshot.current(of: rule).version
        tokens.set(Secret(Self.first), of: "ci")
        #expect(snapshot.current(of: rule).version == version)
        tokens.set(Secret(Self.second), of: "ci")
        let presented = Array(Self.second.utf8)
        #expect(snapshot.current(of: rule).caller(presenting: presented.span) == .token("ci"))
        tokens.keep(["other"])
        #expect(snapshot.current(of: rule).caller(presenting: presented.span) == nil)
    }

    @Test("a value that can be guessed, or that no field can have, is not a token")
    func faults() throws {
        for token in [
            "", "short", "15-characters..", "sixteen with blank", "sixteen\u{e9}letters...", "a\nb456789012345678",
        ] {
            #expect(CallerTokens.fault(of: Secret(token)) != nil, "\(token)")
        }
        #expect(CallerTokens.fault(of: Secret([UInt8](repeating: 97, count: 4097))) != nil)
        #expect(CallerTokens.fault(of: Secret([UInt8](repeating: 97, count: 4096))) == nil)
        #expect(CallerTokens.fault(of: Secret(Self.first)) == nil)
        let fault = try #require(CallerTokens.fault(of: Secret("hunter2")))
        #expect(fault.contains("7 bytes") && !fault.contains("hunter2"))
    }

    private func token(_ fields: String, in field: String = "Authorization") throws -> String? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n".utf8)
        var parser = RequestHeadParser()
        let outcome = parser.parse(bytes.span)
        #expect(outcome == .complete(length: bytes.count))
        return CallerField(field).token(of: parser.head, in: bytes.span).map { bytes.span.text($0) }
    }

    @Test("Authorization has the token after Bearer, in any case, and one space or more")
    func bearer() throws {
        #expect(try token("Authorization: Bearer t0k\r\n") == "t0k")
        #expect(try token("AUTHORIZATION: bearer   t0k\r\n") == "t0k")
        for fields in [
            "", "Authorization:\r\n", "Authorization: Bearer\r\n", "Authorization: t0k\r\n",
            "Authorization: Basic dDBr\r\n", "Authorization: Bearert0k\r\n", "Authorization: Bearer\tt0k\r\n",
            "Authorization: Bearer t0k\r\nAuthorization: Bearer t0k\r\n", "X-Token: Bearer t0k\r\n",
            "Proxy-Authorization: Bearer t0k\r\n",
        ] {
            #expect(try token(fields) == nil, "\(fields)")
        }
    }

    @Test("another field has the token alone, once, and spelled as configured")
    func ownField() throws {
        let name = "X-Caller-Token"
        #expect(try token("x-caller-TOKEN: t0k\r\n", in: name) == "t0k")
        #expect(try token("X-Caller-Token: Bearer t0k\r\n", in: name) == "Bearer t0k")
        #expect(try token("X-Caller-Token:\r\n", in: name) == "")
        for fields in [
            "", "X_Caller_Token: t0k\r\n", "X-Caller-Token: t0k\r\nX_Caller_Token: t0k\r\n",
            "X-Caller-Token: t0k\r\nX-Caller-Token: t0k\r\n", "Authorization: Bearer t0k\r\n",
        ] {
            #expect(try token(fields, in: name) == nil, "\(fields)")
        }
    }
}

@Suite("The keyed hash of callers' tokens")
struct KeyedHashTests {
    @Test(
        "SipHash-2-4 has the published values for 00, 01, 02 … under the key 00 to 0f",
        arguments: [
            (0, 0x726F_DB47_DD0E_0E31), (1, 0x74F8_39C5_93DC_67FD), (7, 0xAB02_00F5_8B01_D137),
            (8, 0x93F5_F579_9A93_2462), (15, 0xA129_CA61_49BE_45E5),
        ] as [(Int, UInt64)])
    func published(count: Int, hash: UInt64) {
        var key = (0..<16).map { UInt8($0) }
        let bytes = (0..<count).map { UInt8($0) }
        #expect(KeyedHash(taking: &key)(bytes.span) == hash)
        #expect(key.isEmpty, "the key is not left in ordinary memory")
    }

    @Test("each hash has a key of its own, so that nobody outside knows a text's hash")
    func keys() {
        let bytes = Array("0123456789abcdef".utf8)
        let (one, two) = (KeyedHash(), KeyedHash())
        #expect(one(bytes.span) == one(bytes.span))
        #expect(one(bytes.span) != two(bytes.span))
    }
}

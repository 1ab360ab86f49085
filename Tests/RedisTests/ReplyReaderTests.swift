// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Redis
import Testing

@Suite("Replies")
struct ReplyReaderTests {
    @Test(
        "each kind of reply is read, whole and byte by byte",
        arguments: [
            ("+OK\r\n", Reply.status("OK")), ("+\r\n", .status("")),
            ("-NOSCRIPT No matching script.\r\n", .error("NOSCRIPT No matching script.")),
            (":0\r\n", .integer(0)), (":-42\r\n", .integer(-42)), (":9223372036854775807\r\n", .integer(.max)),
            ("$0\r\n\r\n", .string([])), ("$5\r\na\r\nb\0\r\n", .string(Array("a\r\nb\0".utf8))),
            ("$-1\r\n", .null), ("*-1\r\n", .null), ("*0\r\n", .array([])),
            (
                "*3\r\n$7\r\nmessage\r\n*1\r\n:1\r\n*2\r\n*0\r\n$-1\r\n",
                .array([.string(Array("message".utf8)), .array([.integer(1)]), .array([.array([]), .null])])
            ),
            ("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n", nested(8)),
        ])
    func kinds(text: String, reply: Reply) throws {
        #expect(try replies(text) == [reply])
        #expect(try replies(text, piece: 1) == [reply])
        #expect(try replies(text + text, piece: 3) == [reply, reply])
    }

    @Test("an incomplete reply is not returned yet")
    func incomplete() throws {
        let text = "*2\r\n$3\r\nabc\r\n-ERR no\r\n"
        for count in 0..<text.utf8.count {
            #expect(try replies(String(decoding: text.utf8.prefix(count), as: UTF8.self)) == [])
        }
    }

    @Test(
        "a malformed reply is refused, and nothing after it is read",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n", "\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n", "$x\r\n", "$-2\r\n",
            "*-2\r\n", "*2147483648\r\n", "*1\r\nx", "$3\r\nabcd\r\n", "$3\r\nabc\r\r", "*01\r\n",
        ])
    func malformed(text: String) {
        #expect(throws: ReplyError.malformed) { try replies(text) }
        var reader = ReplyReader()
        for bytes in [text, "+OK\r\n"] {
            reader.feed(Array(bytes.utf8).span)
            #expect(error(of: &reader) == .malformed)
        }
    }

    @Test("a reply beyond the limits is refused as soon as that shows")
    func limits() {
        let limits = ReplyReader.Limits(bytes: 1000, elements: 10, line: 100)
        func refusal(_ text: String, piece: Int = 50) -> ReplyError? {
            do {
                _ = try replies(text, piece: piece, limits)
                return nil
            } catch {
                return error as? ReplyError
            }
        }
        let long = String(repeating: "x", count: 2000)
        #expect(refusal("$990\r\n\(long.prefix(990))\r\n") == nil)
        #expect(refusal("$2000\r\n\(long)") == .tooLong)
        #expect(refusal("$2000\r\n\(long)\r\n", piece: 4000) == .tooLong)
        #expect(refusal("+\(long.prefix(99))\r\n") == nil)
        #expect(refusal("+\(long.prefix(200))") == .tooLong)
        #expect(refusal("$\(String(repeating: "1", count: 200))") == .tooLong)
        #expect(refusal("*2\r\n$600\r\n\(long.prefix(600))\r\n$600\r\n\(long.prefix(500))") == .tooLong)
        #expect(refusal("*11\r\n") == .tooManyElements)
        #expect(refusal("*2147483647\r\n") == .tooManyElements)
        #expect(refusal("*6\r\n*5\r\n") == .tooManyElements)
        #expect(refusal("*5\r\n*5\r\n") == nil)
        #expect(refusal(String(repeating: "*1\r\n", count: 9)) == .tooDeep)
    }

    @Test("a line that comes byte by byte is read when its end is there, and a longer one refused before")
    func slowLine() throws {
        var reader = ReplyReader(limits: .init(line: 100))
        var replies: [Reply] = []
        for byte in Array("+OK\r\n:12\r\n$3\r\na\nb\r\n-E\r\n".utf8) {
            reader.feed([byte].span)
            guard let reply = try reader.next() else { continue }
            replies.append(reply)
        }
        #expect(replies == [.status("OK"), .integer(12), .string(Array("a\nb".utf8)), .error("E")])
        reader.feed([UInt8(ascii: "+")].span)
        var refusal: ReplyError?
        for _ in 0..<200 where refusal == nil {
            reader.feed([UInt8(ascii: "a")].span)
            do throws(ReplyError) { _ = try reader.next() } catch { refusal = error }
        }
        #expect(refusal == .tooLong)
    }

    @Test("the limits apply to each reply by itself")
    func many() throws {
        let limits = ReplyReader.Limits(bytes: 100, elements: 2, line: 50)
        let text = String(repeating: "*2\r\n$20\r\n01234567890123456789\r\n:1\r\n", count: 3000)
        #expect(try replies(text, piece: 60_000, limits).count == 3000)
        #expect(try replies(text, piece: 7, limits).count == 3000)
    }

    private static func nested(_ count: Int) -> Reply {
        (1..<count).reduce(.array([])) { inner, _ in .array([inner]) }
    }

    private func error(of reader: inout ReplyReader) -> ReplyError? {
        do throws(ReplyError) {
            _ = try reader.next()
            return nil
        } catch {
            return error
        }
    }
}

@Suite("Commands")
struct CommandTests {
    @Test("arguments of a command are sent with their lengths, whatever their bytes")
    func bytes() {
        let command = Command(["SET", .init([0, 13, 10]), .init("ä"), .init(-7), ""])
        let expected = "*5\r\n$3\r\nSET\r\n$3\r\n\0\r\n\r\n$2\r\nä\r\n$2\r\n-7\r\n$0\r\n\r\n"
        #expect(String(decoding: command.bytes, as: UTF8.self) == expected)
    }

    @Test("a command reads as the list of its strings")
    func roundTrip() throws {
        var reader = ReplyReader()
        reader.feed(Command(["EVAL", "return 1", "0"]).bytes.span)
        let reply = try reader.next()
        #expect(reply?.elements?.map(\.text) == ["EVAL", "return 1", "0"])
    }

    @Test("the code of an error is its first word in capitals, or empty")
    func codes() {
        #expect(Reply.error("WRONGPASS invalid username-password pair").errorCode == "WRONGPASS")
        #expect(Reply.error("lower").errorCode == "")
        #expect(Reply.status("OK").errorCode == nil)
    }
}

/// Returns the replies in a text that arrives in pieces of `size` bytes.
private func replies(
    _ text: String, piece: Int = .max, _ limits: ReplyReader.Limits = ReplyReader.Limits()
) throws -> [Reply] {
    var reader = ReplyReader(limits: limits)
    var rest = Array(text.utf8)[...]
    var found: [Reply] = []
    while !rest.isEmpty {
        reader.feed(Array(rest.prefix(piece)).span)
        rest = rest.dropFirst(piece)
        while let reply = try reader.next() { found.append(reply) }
    }
    return found
}

@Suite("Names of scripts")
struct ScriptDigestTests {
    @Test(
        "a script's name is its SHA-1, by the examples of FIPS 180 and at the ends of blocks",
        arguments: [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ),
            (String(repeating: "a", count: 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
            (String(repeating: "a", count: 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
        ])
    func vectors(text: String, digest: String) {
        #expect(ScriptDigest.of(text) == digest)
    }
}

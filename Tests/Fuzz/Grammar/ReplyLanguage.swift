// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Redis

/// Replies of a session store (RESP2), some on each connection.
struct ReplyLanguage: Language {
    static let name = "replies"

    var sentence = Sentence()
    private var expected = ReplyOracle.Outcome()
    private var isOver = false
    private var ends: [Int] = []

    mutating func write() {
        expected = ReplyOracle.Outcome()
        isOver = false
        for _ in 0...sentence.choices.below(3) {
            let reply = put(depth: 0)
            if isOver { return }
            expected.replies.append(reply)
        }
    }

    /// After `isOver` nothing that is returned counts.
    private mutating func put(depth: Int) -> Reply {
        if sentence.choices.once(in: 24) {
            isOver = true
            if sentence.choices.flip() {
                sentence.put(sentence.choices.pick(Self.broken))
                expected.error = .malformed
            } else {
                sentence.put(sentence.choices.pick(Self.cut))
            }
            return .null
        }
        switch sentence.choices.below(depth > 2 ? 5 : 7) {
        case 0:
            let word = sentence.choices.pick(Self.words)
            putLine("+", word)
            return .status("\(word)")
        case 1:
            let word = sentence.choices.pick(Self.errors)
            putLine("-", word)
            return .error("\(word)")
        case 2:
            let number = Int64(bitPattern: sentence.choices.number())
            sentence.put(":")
            if number < 0 { sentence.put("-") }
            sentence.put(number.magnitude)
            sentence.put("\r\n")
            return .integer(number)
        case 3, 4:
            if sentence.choices.once(in: 8) {
                sentence.put("$-1\r\n")
                return .null
            }
            let count = sentence.choices.below(sentence.choices.once(in: 8) ? 200 : 12)
            sentence.put("$")
            sentence.put(UInt64(count))
            sentence.put("\r\n")
            let start = sentence.count
            if count > 4, sentence.choices.flip() { sentence.put("\r\n+x") }
            sentence.putAnything(count - (sentence.count - start))
            let bytes = Array(sentence.bytes[start...])
            sentence.put("\r\n")
            return .string(bytes)
        default:
            if sentence.choices.once(in: 8) {
                sentence.put("*-1\r\n")
                return .null
            }
            let count = sentence.choices.below(4)
            sentence.put("*")
            sentence.put(UInt64(count))
            sentence.put("\r\n")
            var elements: [Reply] = []
            for _ in 0..<count {
                elements.append(put(depth: depth + 1))
                if isOver { return .null }
            }
            return .array(elements)
        }
    }

    private mutating func putLine(_ sign: StaticString, _ text: StaticString) {
        sentence.put(sign)
        sentence.put(text)
        sentence.put("\r\n")
    }

    mutating func check() throws(Violation) {
        let bytes = sentence.bytes
        ends.removeAll(keepingCapacity: true)
        ends.append(bytes.count)
        if sentence.choices.flip() { sentence.choices.arrivals(bytes.count, into: &ends) }
        var reader = ReplyReader(limits: .init())
        var outcome = ReplyOracle.Outcome()
        var start = 0
        for end in ends where outcome.error == nil {
            reader.feed(bytes.span.extracting(start..<end))
            start = end
            do throws(ReplyError) {
                while let reply = try reader.next() { outcome.replies.append(reply) }
            } catch {
                outcome.error = error
            }
        }
        try require(outcome == expected, "\(outcome) where \(expected) is right")
    }

    private static let words: [StaticString] = ["OK", "PONG", "", "QUEUED", "a b", "\u{E9}", "+x"]
    private static let errors: [StaticString] = [
        "ERR x", "NOSCRIPT No matching script", "", "WRONGTYPE", "-", "MOVED 1 a:1",
    ]
    /// Of no length does any continuation make a reply.
    private static let broken: [StaticString] = [
        "x\r\n", "\r\n", "$+1\r\nx\r\n", "$01\r\nx\r\n", "$-2\r\n", "$1x\r\nx\r\n", "$\r\n", ":\r\n", ":+1\r\n",
        ":01\r\n", ":1.5\r\n",
        ":9223372036854775808\r\n", ":-9223372036854775809\r\n", "*-2\r\n", "*x\r\n", "*4294967296\r\n", "$3\r\nabcde",
        "!1\r\nx\r\n",
        "%1\r\n", ":-0\r\n", ": 1\r\n", "$1\r\nx\rx",
    ]
    private static let cut: [StaticString] = [
        "$5\r\nabc", "$5\r\nabcde\r", "+OK", "+OK\r", "*2\r\n:1\r\n", "*1\r\n", ":", "$", "-E", "$5",
    ]
}

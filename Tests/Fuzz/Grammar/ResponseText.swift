// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// A response's head (RFC 9112 §4 and §5), and its meaning.
struct ResponseText {
    private(set) var fields: [WrittenField] = []
    private(set) var start = 0
    private(set) var end = 0
    private(set) var status = 0
    private(set) var reason = ByteRange.empty
    private(set) var minorVersion = 1
    private(set) var length: UInt64?
    private(set) var isChunked = false
    private(set) var isBroken = false
    private(set) var closes = false
    private var nominated: UInt32 = 0

    func isNominated(_ field: WrittenField) -> Bool { field.kind >= 0 && nominated >> UInt32(field.kind) & 1 == 1 }

    /// `isInterim`: of a status below 200 that is not 101. Ranges are those of the head, from its first byte on.
    mutating func write(_ sentence: inout Sentence, isInterim: Bool, mayBreak: Bool = true) {
        fields.removeAll(keepingCapacity: true)
        (start, reason, length) = (sentence.count, .empty, nil)
        (isChunked, closes, nominated) = (false, false, 0)
        let fault = mayBreak ? sentence.choices.below(16) : 9
        isBroken = fault < 2
        if fault == 0 {
            sentence.put(sentence.choices.pick(ResponseWords.brokenLines))
            sentence.put("Server: a\r\n\r\n")
            end = sentence.count
            return
        }
        writeLine(&sentence, isInterim: isInterim)
        let count = sentence.choices.below(5) + 2
        let first = sentence.choices.below(count)
        let faulty = fault == 1 ? sentence.choices.below(count) : -1
        for index in 0..<count {
            if index == faulty { sentence.put(sentence.choices.pick(ResponseWords.brokenFields)) }
            switch (index + first) % count {
            case 0: if !isInterim { writeFraming(&sentence) }
            case 1: if sentence.choices.once(in: 3) { writeConnection(&sentence) }
            default:
                let kind = sentence.choices.below(ResponseWords.others.count)
                let start = beginField(ResponseWords.others[kind].name, &sentence)
                sentence.put(sentence.choices.pick(ResponseWords.values))
                endField(start, kind, isHopByHop: ResponseWords.others[kind].isHopByHop, &sentence)
            }
        }
        sentence.put("\r\n")
        end = sentence.count
    }

    private mutating func writeLine(_ sentence: inout Sentence, isInterim: Bool) {
        minorVersion = sentence.choices.once(in: 6) ? 0 : sentence.choices.once(in: 8) ? 2 : 1
        sentence.put("HTTP/1.")
        sentence.put(UInt8(0x30 + minorVersion))
        sentence.put(" ")
        status = isInterim ? [100, 102, 103, 199][sentence.choices.below(4)] : 200 + sentence.choices.below(800)
        if !isInterim, sentence.choices.flip() {
            status = sentence.choices.pick([200, 200, 204, 304, 401, 302, 206, 426])
        }
        sentence.put(UInt64(status))
        if sentence.choices.once(in: 8) {
            // The space after the digits may be missing together with the phrase.
        } else {
            sentence.put(" ")
            let phrase = sentence.count - start
            sentence.put(sentence.choices.pick(ResponseWords.reasons))
            reason = ByteRange(start: phrase, end: sentence.count - start)
        }
        sentence.put("\r\n")
    }

    private mutating func writeFraming(_ sentence: inout Sentence) {
        switch sentence.choices.below(5) {
        case 0, 1:
            let value =
                sentence.choices.once(in: 8) ? sentence.choices.number() >> 1 : UInt64(sentence.choices.below(40))
            length = value
            let isList = sentence.choices.once(in: 8)
            for index in 0...(sentence.choices.once(in: 8) ? 1 : 0) {
                let start = beginField("Content-Length", &sentence)
                sentence.put(value, zeros: index)
                if isList {
                    sentence.put(sentence.choices.pick(RequestWords.commas))
                    sentence.put(value)
                }
                endField(start, -1, isHopByHop: false, &sentence)
            }
        case 2:
            guard minorVersion > 0 else { return }
            let start = beginField("Transfer-Encoding", &sentence)
            sentence.putInSomeCase("chunked")
            endField(start, -1, isHopByHop: true, &sentence)
            isChunked = true
        default: break
        }
    }

    private mutating func writeConnection(_ sentence: inout Sentence) {
        let start = beginField("Connection", &sentence)
        for index in 0...sentence.choices.below(3) {
            if index > 0 { sentence.put(sentence.choices.pick(RequestWords.commas)) }
            switch sentence.choices.below(4) {
            case 0:
                sentence.putInSomeCase("close")
                closes = true
            case 1:
                sentence.putInSomeCase("keep-alive")
            default:
                let kind = sentence.choices.below(ResponseWords.others.count)
                sentence.putInSomeCase(ResponseWords.others[kind].name)
                nominated |= 1 << UInt32(kind)
            }
        }
        endField(start, -1, isHopByHop: true, &sentence)
    }

    private func beginField(_ name: StaticString, _ sentence: inout Sentence) -> (name: Int, colon: Int, value: Int) {
        let first = sentence.count - start
        sentence.putInSomeCase(name)
        let colon = sentence.count - start
        sentence.put(":")
        sentence.putBlanks()
        return (first, colon, sentence.count - start)
    }

    private mutating func endField(
        _ place: (name: Int, colon: Int, value: Int), _ kind: Int, isHopByHop: Bool, _ sentence: inout Sentence
    ) {
        var value = ByteRange(start: place.value, end: sentence.count - start)
        let isEmpty = value.isEmpty
        sentence.putRareBlanks()
        if isEmpty { value = ByteRange(start: sentence.count - start, end: sentence.count - start) }
        sentence.put("\r\n")
        fields.append(
            WrittenField(
                name: ByteRange(start: place.name, end: place.colon), value: value, kind: kind, isHopByHop: isHopByHop))
    }
}

/// The parts of responses.
enum ResponseWords {
    static let reasons: [StaticString] = ["OK", "", "Not Found", "\u{E9}t\u{E9}", "a\tb", "HTTP/1.1 200 OK", "  "]
    static let others: [(name: StaticString, isHopByHop: Bool)] = [
        ("X-A", false), ("Content-Type", false), ("Server", false), ("Cache-Control", false), ("ETag", false),
        ("Vary", false), ("Warning", false), ("Keep-Alive", true), ("Proxy-Authenticate", true), ("Upgrade", true),
        ("Age", false), ("!#$%&'*+.^`|~0", false),
    ]
    static let values: [StaticString] = [
        "", "a", "a b", "text/html; charset=\"utf-8\"", "a,b", "\u{E9}\u{1F600}", "b\tc", "0", "Apache/2.4",
        "max-age=0, no-store",
        "W/\"x\"", "chunked", "HTTP/1.1 200 OK", "\\\"",
    ]
    /// Each of them, first in a head, makes it none.
    static let brokenLines: [StaticString] = [
        "HTTP/1.1\r\n", "HTTP/1.1 \r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 2000\r\n", "HTTP/1.1 2x0 OK\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1\t200 OK\r\n", "http/1.1 200 OK\r\n", "HTTP/1 200 OK\r\n", "HTTP/0.9 200 OK\r\n", "HTTP/4 200\r\n",
        "ICY 200 OK\r\n",
        "HTTP/1.1 099 a\r\n", "HTTP/1.1 000 a\r\n", "HTTP/1.1 -20 a\r\n", "HTTP/1.1 200 a\0\r\n",
        "HTTP/1.1 200 a\rb\r\n",
        "HTTP/1.1 200 OK\n", " HTTP/1.1 200 OK\r\n", "\r\n", "HTTP/1.1 200OK\r\n", "HTTP/1.1 200\tOK\r\n",
        "HTTP/11 200 OK\r\n",
        "HTTP/1.1 +20 OK\r\n", "HTTP/x.1 200 OK\r\n", "HTTP/1.x 200 OK\r\n", "\u{665}\r\n", "HTTP/1.1 200 OK\r\r\n",
    ]
    static let brokenFields: [StaticString] = [
        "A : b\r\n", "A\t: b\r\n", " A: b\r\n", "\tb\r\n", "A\r\n", ": b\r\n", "A: b\n", "A: b\rc\r\n", "A: b\r\r\n",
        "A: \0\r\n",
        "A: \u{7F}\r\n", "A: \u{1}b\r\n", "A(: b\r\n", "\u{E9}: b\r\n", "A B: c\r\n", "\"A\": b\r\n", "A: b\r\n c\r\n",
        "A:\r\n\tc\r\n",
        "Content-Length: +5\r\n", "Content-Length: -1\r\n", "Content-Length: 0x5\r\n", "Content-Length: 5, 6\r\n",
        "Content-Length: 5 5\r\n", "Content-Length:\r\n", "Content-Length: ,\r\n", "Content-Length: 5;a=b\r\n",
        "Content-Length: 9223372036854775808\r\n", "Content-Length: 18446744073709551616\r\n",
        "Content-Length: 1e1\r\n",
        "Content-Length: \"5\"\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: chunked;q=1\r\n", "Transfer-Encoding:\r\n", "Connection: a b\r\n", "Connection: (\r\n",
        "Connection: \"close\"\r\n", "Connection: close;x\r\n", "\r\nA: b\r\n",
    ]
}

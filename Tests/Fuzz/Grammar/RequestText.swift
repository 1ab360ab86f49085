// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// A field line at its place in a sentence, and its result.
struct WrittenField {
    var name: ByteRange
    var value: ByteRange
    /// Its number among the names that a language has; -1 for those with a part of their own.
    var kind: Int
    /// True if it concerns this connection only, by its name.
    var isHopByHop: Bool
}

/// A request's head (RFC 9112 §3 and §5), and its meaning.
struct RequestText {
    private(set) var fields: [WrittenField] = []
    private(set) var method = ByteRange.empty
    private(set) var target = ByteRange.empty
    private(set) var host: ByteRange?
    private(set) var version = HTTPVersion.http11
    private(set) var body = BodyFraming.none
    /// The length of the whole head.
    private(set) var end = 0
    private(set) var isBroken = false
    private(set) var closes = false
    private(set) var keepsAlive = false
    private(set) var acceptsTrailers = false
    private(set) var upgrades = false
    private(set) var expectation = RequestHead.Expectation.none
    /// The numbers of the fields that `Connection` names, as bits.
    private var nominated: UInt32 = 0

    func isNominated(_ field: WrittenField) -> Bool { field.kind >= 0 && nominated >> UInt32(field.kind) & 1 == 1 }

    mutating func write(_ sentence: inout Sentence, mayBreak: Bool = true) {
        fields.removeAll(keepingCapacity: true)
        (host, body, nominated) = (nil, .none, 0)
        (closes, keepsAlive, acceptsTrailers, upgrades, expectation) = (false, false, false, false, .none)
        let fault = mayBreak ? sentence.choices.below(16) : 9
        isBroken = fault < 3
        for _ in 0..<(sentence.choices.once(in: 16) ? sentence.choices.below(3) : 0) { sentence.put("\r\n") }
        if fault == 0 {
            sentence.put(sentence.choices.pick(RequestWords.brokenLines))
            sentence.put("Host: a\r\n\r\n")
            end = sentence.count
            return
        }
        writeLine(&sentence)
        writeFields(&sentence, isBroken: fault == 1, lacksHost: fault == 2)
        sentence.put("\r\n")
        end = sentence.count
    }

    private mutating func writeLine(_ sentence: inout Sentence) {
        let start = sentence.count
        let kind = sentence.choices.below(16)
        switch kind {
        case 0: sentence.put("CONNECT")
        case 1: sentence.put("OPTIONS")
        default: sentence.put(sentence.choices.pick(RequestWords.methods))
        }
        method = ByteRange(start: start, end: sentence.count)
        sentence.put(" ")
        let targetStart = sentence.count
        if kind == 0 {
            sentence.put(sentence.choices.pick(RequestWords.connectTargets))
        } else if kind == 1, sentence.choices.flip() {
            sentence.put("*")
        } else {
            if sentence.choices.once(in: 8) {
                sentence.putInSomeCase(sentence.choices.flip() ? "http" : "https")
                sentence.put("://")
                sentence.put(sentence.choices.pick(RequestWords.hosts))
                switch sentence.choices.below(6) {
                case 0: break
                case 1: sentence.put("?x")
                default: PathText.write(&sentence)
                }
            } else {
                PathText.write(&sentence)
            }
        }
        target = ByteRange(start: targetStart, end: sentence.count)
        switch sentence.choices.below(12) {
        case 0, 1:
            version = .http10
            sentence.put(" HTTP/1.0\r\n")
        case 2:
            version = .http11
            sentence.put(" HTTP/1.9\r\n")
        default:
            version = .http11
            sentence.put(" HTTP/1.1\r\n")
        }
    }

    private mutating func writeFields(_ sentence: inout Sentence, isBroken: Bool, lacksHost: Bool) {
        let count = 4 + sentence.choices.below(4)
        let first = sentence.choices.below(count)
        let faulty = isBroken ? sentence.choices.below(count) : -1
        for index in 0..<count {
            if index == faulty { sentence.put(sentence.choices.pick(RequestWords.brokenFields)) }
            switch (index + first) % count {
            case 0:
                if lacksHost {
                    // Only HTTP/1.0 may be without.
                    self.isBroken = version == .http11
                } else if version == .http11 || sentence.choices.flip() {
                    host = writeField("Host", sentence.choices.pick(RequestWords.hosts), -1, &sentence)
                }
            case 1: writeFraming(&sentence)
            case 2: if sentence.choices.flip() { writeConnection(&sentence) }
            default: writeOther(&sentence)
            }
        }
    }

    private mutating func writeFraming(_ sentence: inout Sentence) {
        switch sentence.choices.below(6) {
        case 0, 1:
            let length =
                sentence.choices.once(in: 8) ? sentence.choices.number() >> 1 : UInt64(sentence.choices.below(40))
            let start = beginField("Content-Length", &sentence)
            sentence.put(length, zeros: sentence.choices.once(in: 8) ? sentence.choices.below(25) : 0)
            endField(start, -1, isHopByHop: false, &sentence)
            body = .length(length)
        case 2:
            guard version == .http11 else { return }
            let start = beginField("Transfer-Encoding", &sentence)
            sentence.putInSomeCase("chunked")
            endField(start, -1, isHopByHop: true, &sentence)
            body = .chunked
        default: break
        }
    }

    private mutating func writeConnection(_ sentence: inout Sentence) {
        let start = beginField("Connection", &sentence)
        for index in 0...sentence.choices.below(3) {
            if index > 0 { sentence.put(sentence.choices.pick(RequestWords.commas)) }
            switch sentence.choices.below(6) {
            case 0:
                sentence.putInSomeCase("close")
                closes = true
            case 1:
                sentence.putInSomeCase("keep-alive")
                keepsAlive = true
            default:
                let kind = sentence.choices.below(RequestWords.others.count)
                sentence.putInSomeCase(RequestWords.others[kind].name)
                nominated |= 1 << UInt32(kind)
                if kind == RequestWords.upgrade { upgrades = true }
                if kind == RequestWords.keepAlive { keepsAlive = true }
            }
        }
        endField(start, -1, isHopByHop: true, &sentence)
    }

    private mutating func writeOther(_ sentence: inout Sentence) {
        if sentence.choices.once(in: 16) {
            let isKnown = sentence.choices.flip()
            _ = writeField("Expect", isKnown ? "100-continue" : "x", -1, &sentence)
            expectation = isKnown && expectation == .none ? .continueFirst : .unknown
            return
        }
        let kind = sentence.choices.below(RequestWords.others.count)
        let other = RequestWords.others[kind]
        let value = sentence.choices.below(RequestWords.values.count)
        _ = writeField(other.name, RequestWords.values[value], kind, &sentence, isHopByHop: other.isHopByHop)
        if kind == RequestWords.te, value == RequestWords.trailers { acceptsTrailers = true }
    }

    // MARK: Lines

    private func beginField(_ name: StaticString, _ sentence: inout Sentence) -> (name: Int, colon: Int, value: Int) {
        let start = sentence.count
        sentence.putInSomeCase(name)
        let colon = sentence.count
        sentence.put(":")
        sentence.putBlanks()
        return (start, colon, sentence.count)
    }

    @discardableResult
    private mutating func endField(
        _ start: (name: Int, colon: Int, value: Int), _ kind: Int, isHopByHop: Bool, _ sentence: inout Sentence
    ) -> ByteRange {
        // An empty value follows all white space.
        var value = ByteRange(start: start.value, end: sentence.count)
        let isEmpty = value.isEmpty
        sentence.putRareBlanks()
        if isEmpty { value = ByteRange(start: sentence.count, end: sentence.count) }
        sentence.put("\r\n")
        fields.append(
            WrittenField(
                name: ByteRange(start: start.name, end: start.colon), value: value, kind: kind, isHopByHop: isHopByHop))
        return value
    }

    private mutating func writeField(
        _ name: StaticString, _ value: StaticString, _ kind: Int, _ sentence: inout Sentence, isHopByHop: Bool = false
    ) -> ByteRange {
        let start = beginField(name, &sentence)
        sentence.put(value)
        return endField(start, kind, isHopByHop: isHopByHop, &sentence)
    }
}

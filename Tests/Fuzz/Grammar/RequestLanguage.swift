// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import HTTPWire

@testable import Proxy

/// Requests with their bodies, and the beginning of the connection's next bytes.
struct RequestLanguage: Language {
    static let name = "requests"

    var sentence = Sentence()
    private var text = RequestText()
    private var chunks = ChunkedText()
    private var parser = RequestHeadParser()
    private var reading = BodyReading()
    private var ends: [Int] = []
    private let sink = FieldSink()

    mutating func write() {
        text.write(&sentence)
        if text.isBroken { return }
        switch text.body {
        case .none: break
        case .length(let length):
            for _ in 0..<min(length, 40) { sentence.put(UInt8(truncatingIfNeeded: sentence.choices.below(256))) }
        case .chunked: chunks.write(&sentence)
        }
        if sentence.choices.once(in: 4) { sentence.put("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
    }

    mutating func check() throws(Violation) {
        let bytes = sentence.bytes
        parser.reset()
        let whole = parser.parse(bytes.span)
        if text.isBroken {
            guard case .refused(let error) = whole else {
                throw Violation(description: "a broken head is taken: \(whole)")
            }
            try require((400...599).contains(error.status), "refused by \(error.status)")
        } else {
            try require(whole == .complete(length: text.end), "a head is not taken: \(whole)")
            try checkHead()
            if sentence.choices.once(in: 16) { try checkForwarded() }
        }
        if sentence.choices.once(in: 3) {
            sentence.choices.arrivals(sentence.count, into: &ends)
            parser.reset()
            var outcome = RequestHeadParser.Outcome.incomplete
            for end in ends {
                outcome = parser.parse(bytes.span.extracting(0..<end))
                if outcome != .incomplete { break }
            }
            try require(outcome == whole, "in pieces it reads otherwise: \(outcome) and \(whole)")
        } else {
            ends.removeAll(keepingCapacity: true)
            ends.append(sentence.count)
        }
        if !text.isBroken { try checkBody() }
    }

    private func checkHead() throws(Violation) {
        let head = parser.head
        try require(head.methodRange == text.method && head.target.range == text.target, "the line is read otherwise")
        try require(head.version == text.version && head.host == text.host, "another version, or another host")
        try require(head.body == text.body, "another framing: \(head.body)")
        try require(head.fields.count == text.fields.count, "\(head.fields.count) fields")
        for index in text.fields.indices {
            let (line, field) = (head.fields[index], text.fields[index])
            try require(line.name == field.name && line.value == field.value, "field \(index) is elsewhere")
            try require(
                line.isHopByHop == (field.isHopByHop || text.isNominated(field)), "field \(index) goes on, or not")
        }
        try require(
            head.keepsAlive == (!text.closes && (text.version == .http11 || text.keepsAlive)), "it is kept, or closed")
        try require(head.expectation == text.expectation, "another expectation")
        try require(head.acceptsTrailers == text.acceptsTrailers, "trailers are accepted, or not")
    }

    private mutating func checkBody() throws(Violation) {
        try reading.read(text.body, sentence.bytes, from: text.end, arrivals: ends)
        switch text.body {
        case .none: try require(reading.end == text.end, "a body that is none")
        case .length(let length):
            let there = sentence.count - text.end
            try require(
                UInt64(reading.data.count) == min(length, UInt64(there)), "\(reading.data.count) bytes of \(length)")
            try require((reading.end >= 0) == (length <= UInt64(there)), "it ends, or not")
        case .chunked:
            try require(
                reading.isRefused == chunks.isBroken, chunks.isBroken ? "a broken body is taken" : "a body is refused")
            guard !chunks.isBroken else { return }
            try require(reading.end == chunks.end && reading.data == chunks.data, "another body")
            try require(reading.trailers == chunks.trailers, "other trailers")
        }
    }

    /// Checks that the upstream's request has the caller's end-to-end fields, in order and with their values, and no
    /// others.
    private func checkForwarded() throws(Violation) {
        let (head, bytes) = (parser.head, sentence.bytes)
        var queue = ByteQueue()
        sink.reset()
        var target = ByteQueue()
        target.append("/t")
        sink.begin(bytes.span.extracting(head.methodRange.bounds), target)
        ForwardedRequest.write(
            head, in: bytes.span, authority: Array("up.example".utf8), overriddenBy: .none, to: sink)
        sink.end(head.body)
        try require(sink.isComplete, "something is left out")
        sink.take(into: &queue)
        let written = queue.withSpan { $0.array }
        guard let (lines, end) = Oracle.section(written[...]), end == written.count else {
            throw Violation(description: "what goes upstream does not end with its head")
        }
        var expected = [Array("host:up.example".utf8)]
        for field in text.fields where !field.isHopByHop && field.kind >= 0 && !text.isNominated(field) {
            let name = bytes[field.name.bounds].map { $0.lowercasedLetter }
            expected.append(name + [0x3A] + bytes[field.value.bounds])
        }
        expected.append(Array("via:\(text.version == .http10 ? "1.0" : "1.1") countersign".utf8))
        if text.acceptsTrailers, text.version == .http11 {
            expected += [Array("te:trailers".utf8), Array("connection:TE".utf8)]
        }
        switch text.body {
        case .none: break
        case .length(let length): expected.append(Array("content-length:\(length)".utf8))
        case .chunked: expected.append(Array("transfer-encoding:chunked".utf8))
        }
        let fields = lines.dropFirst().map { line in Oracle.field(line).map { Array("\($0.name):".utf8) + $0.value } }
        try require(
            fields == expected.map(Optional.some),
            "\(String(decoding: written, as: UTF8.self)) goes upstream, not \(expected.map { String(decoding: $0, as: UTF8.self) })"
        )
        try require(
            lines.first.map(Array.init) == Array(bytes[head.methodRange.bounds]) + Array(" /t HTTP/1.1".utf8),
            "another line")
    }
}

extension UInt8 {
    /// The byte, with a capital letter made small.
    var lowercasedLetter: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}

/// Several requests on one connection: each ends where it was written to end, and the next one begins there.
struct ConnectionLanguage: Language {
    static let name = "connections"
    static let period: UInt64 = 4

    var sentence = Sentence()
    private var text = RequestText()
    private var chunks = ChunkedText()
    private var parser = RequestHeadParser()
    private var reading = BodyReading()
    /// The ends of each head and each message.
    private var messages: [(start: Int, head: Int, end: Int, body: BodyFraming)] = []

    mutating func write() {
        messages.removeAll(keepingCapacity: true)
        for _ in 0...sentence.choices.below(3) {
            let start = sentence.count
            text.write(&sentence, mayBreak: false)
            let head = text.end
            switch text.body {
            case .none: break
            case .length(let length):
                // A body that is longer than the bytes that come is the last on its connection.
                guard length <= 64 else { return }
                // Within a body, bytes that look like a request are not one.
                if length > 20, sentence.choices.flip() { sentence.put("GET /x HTTP/1.1\r\n\r\n") }
                sentence.putAnything(Int(length) - (sentence.count - head))
            case .chunked: chunks.write(&sentence, mayBreak: false)
            }
            messages.append((start, head, sentence.count, text.body))
        }
    }

    mutating func check() throws(Violation) {
        let bytes = sentence.bytes
        for message in messages {
            parser.reset()
            let outcome = parser.parse(bytes.span.extracting(message.start..<bytes.count))
            try require(outcome == .complete(length: message.head - message.start), "a head ends elsewhere: \(outcome)")
            try require(parser.head.body == message.body, "another framing: \(parser.head.body)")
            try reading.read(message.body, bytes, from: message.head, arrivals: [bytes.count])
            try require(reading.end == message.end, "a message ends at \(reading.end), not at \(message.end)")
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// Several requests on one connection, one behind the other: each ends where it was written to end, and the next one begins there.
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
                // A body that is longer than what comes is the last on its connection.
                guard length <= 64 else { return }
                // What looks like a request is none within a body.
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

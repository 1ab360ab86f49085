// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// Bodies in chunks, and whatever follows them on the connection.
struct ChunkLanguage: Language {
    static let name = "chunks"

    var sentence = Sentence()
    private var text = ChunkedText()
    private var reading = BodyReading()
    private var ends: [Int] = []

    mutating func write() {
        text.write(&sentence)
        if sentence.choices.flip() { sentence.put("GET / HTTP/1.1\r\n") }
    }

    mutating func check() throws(Violation) {
        ends.removeAll(keepingCapacity: true)
        ends.append(sentence.count)
        try compare()
        if sentence.choices.flip() {
            sentence.choices.arrivals(sentence.count, into: &ends)
            try compare()
        }
        if !text.isBroken, sentence.choices.once(in: 8) { try checkWriting() }
    }

    private mutating func compare() throws(Violation) {
        let bytes = sentence.bytes
        try reading.read(.chunked, bytes, from: 0, arrivals: ends)
        try require(reading.isRefused == text.isBroken, text.isBroken ? "a broken body is taken" : "a body is refused")
        if text.isBroken { return }
        try require(reading.end == text.end, "it ends at \(reading.end), not at \(text.end)")
        try require(reading.data == text.data, "the chunks hold something else")
        try require(reading.trailers == text.trailers, "other trailers")
    }

    /// What is written of the data is read as the data.
    private mutating func checkWriting() throws(Violation) {
        var queue = ByteQueue()
        let data = text.data
        var start = 0
        while start < data.count {
            let end = min(start + 1 + sentence.choices.below(100), data.count)
            ResponseWriter.chunk(data.span.extracting(start..<end), to: &queue)
            start = end
        }
        ResponseWriter.endOfChunks(to: &queue)
        let written = queue.withSpan { $0.array }
        try reading.read(.chunked, written, from: 0, arrivals: [written.count])
        try require(reading.data == data && reading.end == written.count, "what is written is read otherwise")
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// Bodies in chunks, and the bytes that follow on the connection.
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

    /// Checks that chunks written from the data are read as the data.
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

/// A body in chunks (RFC 9112 §7.1), and its meaning.
struct ChunkedText {
    /// The content of all chunks.
    private(set) var data: [UInt8] = []
    /// The trailers that may go further, `name:value`, as they are written.
    private(set) var trailers: [UInt8] = []
    private(set) var trailerCount = 0
    /// Its end in the sentence.
    private(set) var end = 0
    /// True if it breaks a rule.
    private(set) var isBroken = false

    mutating func write(_ sentence: inout Sentence, mayBreak: Bool = true) {
        data.removeAll(keepingCapacity: true)
        trailers.removeAll(keepingCapacity: true)
        trailerCount = 0
        isBroken = mayBreak && sentence.choices.once(in: 4)
        let chunks = sentence.choices.below(4)
        let broken = isBroken ? sentence.choices.below(chunks + 2) : -1
        for index in 0..<chunks {
            if index == broken {
                sentence.put(sentence.choices.pick(Self.brokenChunks))
                end = sentence.count
                return
            }
            writeChunk(&sentence)
        }
        if broken == chunks {
            sentence.put(sentence.choices.pick(Self.brokenChunks))
            end = sentence.count
            return
        }
        for _ in 0...(sentence.choices.once(in: 6) ? sentence.choices.below(15) : 0) { sentence.put(0x30) }
        writeExtensions(&sentence)
        sentence.put("\r\n")
        for _ in 0..<(sentence.choices.once(in: 3) ? sentence.choices.below(4) : 0) { writeTrailer(&sentence) }
        if broken > chunks { sentence.put(sentence.choices.pick(Self.brokenTrailers)) }
        sentence.put("\r\n")
        end = sentence.count
    }

    private mutating func writeChunk(_ sentence: inout Sentence) {
        let size = sentence.choices.once(in: 16) ? sentence.choices.below(300) + 1 : sentence.choices.below(20) + 1
        let zeros = sentence.choices.once(in: 8) ? sentence.choices.below(13) : 0
        sentence.put(UInt64(size), radix: 16, zeros: zeros, isUpper: sentence.choices.flip())
        writeExtensions(&sentence)
        sentence.put("\r\n")
        let start = sentence.count
        // Bytes that look like the end of a chunk do not end it.
        if size > 7, sentence.choices.once(in: 3) { sentence.put("\r\n0\r\n\r\n") }
        while sentence.count - start < size { sentence.put(UInt8(truncatingIfNeeded: sentence.choices.below(256))) }
        data.append(contentsOf: sentence.bytes[start..<(start + size)])
        sentence.put("\r\n")
    }

    private func writeExtensions(_ sentence: inout Sentence) {
        guard sentence.choices.once(in: 4) else { return }
        for _ in 0...sentence.choices.below(2) {
            sentence.putRareBlanks()
            sentence.put(";")
            sentence.putRareBlanks()
            sentence.put(sentence.choices.pick(Self.tokens))
            if sentence.choices.flip() {
                sentence.putRareBlanks()
                sentence.put("=")
                sentence.putRareBlanks()
                sentence.put(sentence.choices.pick(sentence.choices.flip() ? Self.tokens : Self.quoted))
            }
        }
    }

    private mutating func writeTrailer(_ sentence: inout Sentence) {
        let (name, isKept) = sentence.choices.pick(Self.names)
        sentence.put(name)
        sentence.put(":")
        sentence.putBlanks()
        let start = sentence.count
        sentence.put(sentence.choices.pick(Self.values))
        if isKept {
            unsafe trailers.append(
                contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
            trailers.append(0x3A)
            trailers.append(contentsOf: sentence.bytes[start...])
            trailers.append(0x0A)
            trailerCount += 1
        }
        sentence.putRareBlanks()
        sentence.put("\r\n")
    }

    /// The last of its names is kept back by RFC 9110 §6.5.1.
    private static let names: [(StaticString, Bool)] = [
        ("Checksum", true), ("x-A", true), ("!#$%&'*+-.^_`|~0", true), ("Server-Timing", true), ("ETag", true),
        ("Content-Length", false), ("transfer-encoding", false), ("Host", false), ("SET-COOKIE", false),
        ("Authorization", false), ("Trailer", false), ("Connection", false), ("Content-Type", false),
    ]
    private static let values: [StaticString] = [
        "", "x", "a b", "\"q\"", "a,b", "chunked", "5", "\u{E9}", "a\tb",
    ]
    private static let tokens: [StaticString] = ["a", "name", "!#$%&'*+-.^_`|~", "0", "q"]
    private static let quoted: [StaticString] = [
        #""""#, #""a b""#, #""\"""#, #""\\""#, #"";,""#, "\"\u{E9}\t\"", #""\a""#, #""0""#,
    ]
    private static let brokenChunks: [StaticString] = [
        "\r\n", "g\r\n", "-1\r\nx", "+1\r\nx\r\n", "0x1\r\nx\r\n", " 1\r\nx\r\n", "1 \r\nx\r\n", "1\t\r\nx\r\n",
        "1\nx\r\n",
        "00000000000000001\r\nx\r\n", "8000000000000000\r\n", "ffffffffffffffff\r\n", "10000000000000001\r\n",
        "1;\r\nx\r\n", "1;a=\r\nx\r\n", "1;a b\r\nx\r\n", "1;a=\"b\r\nx\r\n", "1;a=\"b\"c\r\nx\r\n", "1;=b\r\nx\r\n",
        "1;a\nx\r\n", "1;a=\"\n\"\r\nx\r\n", "1;a=\"\\\n\"\r\nx\r\n", "1,a\r\nx\r\n", "1\r\r\nx\r\n", "1\r\nxy\r\n",
        "2\r\nx\r\ny", "1\r\nx\n", "1\r\nx\rx", "1\r\nx0\r\n\r\n", "\u{FF11}\r\nx\r\n", "1;a;;b\r\nx\r\n",
        "1a;b=c d\r\n",
        "1;a\r\rx\r\n",
    ]
    private static let brokenTrailers: [StaticString] = [
        " a: b\r\n", "a: b\r\n c\r\n", "a : b\r\n", "a\r\n", ": b\r\n", "a: b\n", "a: b\rc\r\n", "a: \0\r\n",
        "a: \u{7F}\r\n",
        "a(: b\r\n", "\u{E9}: b\r\n", "\n", "a: b\r\n\tc: d\r\n", "a\t: b\r\n",
    ]
}

/// The result of `BodyDecoder` for a body, in memory that the next one uses again.
struct BodyReading {
    private(set) var data: [UInt8] = []
    /// As in `ChunkedText`.
    private(set) var trailers: [UInt8] = []
    /// Offset of the body's end; -1 before that is known.
    private(set) var end = -1
    private(set) var isRefused = false

    /// Reads the body that begins at `start`, in bytes that arrive piece by piece.
    mutating func read(
        _ framing: BodyFraming, _ bytes: [UInt8], from start: Int, arrivals: [Int]
    ) throws(Violation) {
        data.removeAll(keepingCapacity: true)
        trailers.removeAll(keepingCapacity: true)
        (end, isRefused) = (-1, false)
        var decoder = BodyDecoder(framing: framing)
        var position = start
        let span = bytes.span
        for arrived in arrivals where arrived >= position {
            while true {
                let window = span.extracting(position..<arrived)
                switch decoder.decode(window) {
                case .data(let range, let consumed):
                    try require(consumed > 0 && range.end <= consumed && consumed <= window.count, "data \(range)")
                    for index in range.bounds { data.append(window[index]) }
                    position += consumed
                    continue
                case .needMore(let consumed):
                    try require(consumed <= window.count, "more is done with than there is")
                    position += consumed
                case .end(let consumed):
                    try require(consumed <= window.count, "more is done with than there is")
                    end = position + consumed
                    noteTrailers(decoder.trailers, window)
                    return
                case .refused:
                    isRefused = true
                    return
                }
                break
            }
        }
    }

    private mutating func noteTrailers(_ lines: [FieldLine], _ window: Span<UInt8>) {
        for line in lines {
            for index in line.name.bounds { trailers.append(window[index]) }
            trailers.append(0x3A)
            for index in line.value.bounds { trailers.append(window[index]) }
            trailers.append(0x0A)
        }
    }
}

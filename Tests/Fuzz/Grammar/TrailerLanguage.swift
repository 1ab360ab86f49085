// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// The lines after a body, as libcurl passes them on.
struct TrailerLanguage: Language {
    static let name = "trailers"

    var sentence = Sentence()
    private var lines: [(start: Int, end: Int, isField: Bool, name: ByteRange, value: ByteRange, isKept: Bool)] = []

    mutating func write() {
        lines.removeAll(keepingCapacity: true)
        let count = sentence.choices.once(in: 32) ? sentence.choices.below(70) : sentence.choices.below(6)
        for _ in 0..<count {
            let start = sentence.count
            if sentence.choices.once(in: 10) {
                sentence.put(sentence.choices.pick(Self.broken))
                lines.append((start, sentence.count, false, .empty, .empty, false))
                return
            }
            let (name, isKept) = sentence.choices.pick(Self.names)
            sentence.putInSomeCase(name)
            let nameEnd = sentence.count
            sentence.put(":")
            sentence.putBlanks()
            let valueStart = sentence.count
            sentence.put(sentence.choices.pick(ResponseWords.values))
            let valueEnd = sentence.count
            sentence.putRareBlanks()
            sentence.put("\r\n")
            lines.append(
                (
                    start, sentence.count, true, ByteRange(start: start, end: nameEnd),
                    ByteRange(start: valueStart, end: valueEnd), isKept
                ))
        }
    }

    func check() throws(Violation) {
        let bytes = sentence.bytes
        var trailers = TrailerLines()
        var expected: [UInt8] = []
        for (index, line) in lines.enumerated() {
            do throws(WireError) {
                try trailers.append(line: bytes.span.extracting(line.start..<line.end))
            } catch {
                try require(!line.isField || index >= 64, "a field is refused: \(error.code)")
                try require(error.status == 502, "an upstream's fault is told as \(error.status)")
                return
            }
            try require(line.isField && index < 64, "what is no field is taken, or too much")
            guard line.isKept else { continue }
            expected += bytes[line.name.bounds]
            expected += [0x3A, 0x20]
            expected += bytes[line.value.bounds]
            expected += [13, 10]
        }
        try require(trailers.lines.withSpan { $0.array } == expected, "other trailers")
    }

    /// The others are kept back by RFC 9110 §6.5.1, and names that a CGI program takes for those.
    private static let names: [(StaticString, Bool)] = [
        ("Checksum", true), ("x-a", true), ("!#$%&'*+-.^`|~0", true), ("Server-Timing", true), ("ETag", true),
        ("grpc-status", true),
        ("Content-Length", false), ("Transfer-Encoding", false), ("Host", false), ("Set-Cookie", false),
        ("Trailer", false),
        ("Authorization", false), ("Connection", false), ("Content-Type", false), ("Content_Length", false),
        ("Set_Cookie", false),
    ]
    private static let broken: [StaticString] = [
        "a\r\n", ": b\r\n", "a : b\r\n", "a: b\n", "a: \0\r\n", "a: \u{7F}\r\n", "a(: b\r\n", "\u{E9}: b\r\n", "a: b",
        "a: b\r", "\n", "\r\n",
        "a: b\rc\r\n", " a: b\r\n", "\tb\r\n",
    ]
}

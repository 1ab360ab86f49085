// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

/// Reads a body in chunks, and the bytes after it. Then writes the same bytes as the data of chunks.
func fuzzChunks(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let expected = ChunkOracle.read(input.array)
    let whole = try decoded(input, arrivals: [input.count])
    try require(whole.isSame(as: expected), "\(whole) where \(expected) is right")
    let cut = try decoded(input, arrivals: dice.arrivals(input.count))
    try require(cut == whole, "in pieces it reads otherwise: \(cut) and \(whole)")
    try checkWriting(input, &dice)
}

/// Returns the result of a decoder for bytes that arrive in pieces.
private func decoded(_ bytes: Span<UInt8>, arrivals: [Int]) throws(Violation) -> ChunkOracle.Outcome {
    var decoder = BodyDecoder(framing: .chunked)
    var outcome = ChunkOracle.Outcome()
    var start = 0
    for end in arrivals {
        while true {
            let window = bytes.extracting(start..<end)
            switch decoder.decode(window) {
            case .data(let range, let consumed):
                try require(
                    consumed > 0 && consumed <= window.count && range.end <= consumed && !range.isEmpty,
                    "data \(range) in \(consumed) bytes of \(window.count)")
                outcome.data += window.copy(range)
                start += consumed
                continue
            case .needMore(let consumed):
                try require((0...window.count).contains(consumed), "\(consumed) of \(window.count) bytes are done with")
                start += consumed
            case .end(let consumed):
                try require((0...window.count).contains(consumed), "\(consumed) of \(window.count) bytes are done with")
                outcome.trailers = decoder.trailers.map { line in
                    window.text(line.name).lowercased() + ":" + window.text(line.value)
                }
                outcome.end = start + consumed
                try require(decoder.decode(window) == .end(consumed: 0), "the end is not final")
                return outcome
            case .refused(let error):
                outcome.refusal = error.code
                outcome.isRefused = true
                try require(decoder.decode(window) == .refused(error), "a refusal is not final")
                return outcome
            }
            break
        }
    }
    return outcome
}

/// Checks that the chunks we write are read as their data, and end where we ended.
private func checkWriting(_ input: Span<UInt8>, _ dice: inout Dice) throws(Violation) {
    var output = ByteQueue()
    var start = 0
    for end in dice.arrivals(input.count) {
        ResponseWriter.chunk(input.extracting(start..<end), to: &output)
        start = end
    }
    ResponseWriter.lastChunk(to: &output)
    ResponseWriter.field("Checksum", "x", to: &output)
    ResponseWriter.endOfHead(to: &output)
    let written = output.withSpan { $0.array }
    let read = ChunkOracle.read(written)
    try require(read.end == written.count && read.trailers == ["checksum:x"], "what is written does not end")
    try require(read.data == input.array, "what is written reads as something else")
}

/// Reads the lines after a body as libcurl passes them on, one by one: the bytes up to each LF, with it.
func fuzzTrailers(_ input: Span<UInt8>) throws(Violation) {
    var trailers = TrailerLines()
    var expected: [(name: String, value: [UInt8])] = []
    var held = 0
    var rest = input.array[...]
    var count = 0
    while !rest.isEmpty {
        let line = rest.prefix(through: rest.firstIndex(of: 10) ?? rest.index(before: rest.endIndex))
        rest = rest[line.endIndex...]
        count += 1
        let isWhole = line.count >= 2 && line.suffix(2).elementsEqual([13, 10])
        let field = isWhole ? Oracle.field(line.dropLast(2)) : nil
        let fits = count <= 64 && held + line.count <= 16_384
        do throws(WireError) {
            try trailers.append(line: line.span)
        } catch {
            try require(error.status == 502, "an upstream's fault is told as \(error.status)")
            try require(field == nil || !fits, "a field is refused")
            break
        }
        guard let field, fits else { throw Violation(description: "what is no field is taken, or too much") }
        guard !ChunkOracle.mustNotTrail(field.name) else { continue }
        expected.append((field.name, field.value))
        held += field.nameEnd - line.startIndex + field.value.count + 4
    }
    var found: [(name: String, value: [UInt8])] = []
    trailers.forEach { name, value in found.append((name.string.lowercased(), value.array)) }
    try require(found.elementsEqual(expected) { $0 == $1 }, "\(found) where \(expected) is right")
    let written = trailers.lines.withSpan { $0.array }
    try require(trailers.isEmpty == written.isEmpty && written.count == held, "\(written.count) bytes are held")
    // Written after a body, they are one and the same section to every reader.
    let section = Oracle.section((written + [13, 10])[...])
    try require(section?.lines.count == expected.count && section?.end == written.count + 2, "a section that splits")
}

/// A reader of the chunked coding from left to right, after RFC 9112 §7.1, over an array that is complete.
struct ChunkOracle {
    /// The data of a body, and its end.
    struct Outcome: Equatable, CustomStringConvertible {
        var data: [UInt8] = []
        /// `name:value`, the name in lower case; of those that may go further.
        var trailers: [String] = []
        /// Offset of the body's end; `nil` before that is known.
        var end: Int?
        var isRefused = false
        /// The reason of a refusal, if the decoder gives one.
        var refusal: WireErrorCode?

        /// Everything but the reason of a refusal, which only the decoder tells.
        func isSame(as other: Outcome) -> Bool {
            data == other.data && trailers == other.trailers && end == other.end && isRefused == other.isRefused
        }

        var description: String {
            let ending = isRefused ? "refused \(refusal?.rawValue ?? "")" : end.map { "ended at \($0)" } ?? "open"
            return "[\(data.count) bytes, \(trailers), \(ending)]"
        }
    }

    private enum Stop: Error {
        case ended, refused
    }

    private let bytes: [UInt8]
    private var position = 0
    private var extensionBytes = 0
    private var outcome = Outcome()

    static func read(_ bytes: [UInt8]) -> Outcome {
        var oracle = ChunkOracle(bytes: bytes)
        do throws(Stop) {
            while try oracle.chunk() {}
            try oracle.trailers()
        } catch {
            oracle.outcome.isRefused = error == .refused
            oracle.outcome.trailers = []
        }
        return oracle.outcome
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private func peek() throws(Stop) -> UInt8 {
        guard position < bytes.count else { throw .ended }
        return bytes[position]
    }

    private mutating func expect(_ text: String) throws(Stop) {
        for byte in text.utf8 {
            guard try peek() == byte else { throw .refused }
            position += 1
        }
    }

    /// Reads a chunk. Returns true if another one follows.
    private mutating func chunk() throws(Stop) -> Bool {
        var digits = ""
        while true {
            let byte = try peek()
            guard let digit = UInt8(exactly: byte), Character(Unicode.Scalar(digit)).isHexDigit, digit < 128 else {
                break
            }
            digits.append(Character(Unicode.Scalar(digit)))
            guard digits.count <= 16, let size = UInt64(digits, radix: 16), size <= Int64.max else { throw .refused }
            position += 1
        }
        guard let size = UInt64(digits, radix: 16) else { throw .refused }
        try extensions()
        try expect("\r\n")
        if size == 0 { return false }
        let there = min(UInt64(bytes.count - position), size)
        outcome.data += bytes[position..<position + Int(there)]
        position += Int(there)
        guard there == size else { throw .ended }
        try expect("\r\n")
        return true
    }

    /// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`
    private mutating func extensions() throws(Stop) {
        while try peek() != 13 {
            try blanks()
            try expect(";")
            try blanks()
            try token()
            let end = position
            try blanks()
            if try peek() == UInt8(ascii: "=") {
                position += 1
                try blanks()
                if try peek() == UInt8(ascii: "\"") { try quoted() } else { try token() }
            } else if try peek() != UInt8(ascii: ";"), position > end {
                throw .refused
            }
        }
    }

    private mutating func blanks() throws(Stop) {
        while true {
            let byte = try peek()
            guard byte == 32 || byte == 9 else { return }
            position += 1
        }
    }

    private mutating func token() throws(Stop) {
        guard Oracle.isTokenByte(try peek()) else { throw .refused }
        while Oracle.isTokenByte(try peek()) { position += 1 }
    }

    private mutating func quoted() throws(Stop) {
        try expect("\"")
        while true {
            let byte = try peek()
            guard Oracle.isValue([byte]) else { throw .refused }
            position += 1
            if byte == UInt8(ascii: "\"") { return }
            if byte == UInt8(ascii: "\\") {
                guard Oracle.isValue([try peek()]) else { throw .refused }
                position += 1
            }
        }
    }

    /// Lines are checked as they end, fields when all are there.
    private mutating func trailers() throws(Stop) {
        let start = position
        var lineStart = position
        while true {
            guard position - start < 8_192 else { throw position < bytes.count ? .refused : .ended }
            let byte = try peek()
            position += 1
            guard byte == 10 else { continue }
            guard position >= lineStart + 2, bytes[position - 2] == 13 else { throw .refused }
            if position == lineStart + 2 { break }
            lineStart = position
        }
        // Every LF had its CR; a bare CR is within a line, and no field's.
        var rest = bytes[start..<position - 2]
        var count = 0
        while let feed = rest.firstIndex(of: 10) {
            count += 1
            guard let field = Oracle.field(rest[..<(feed - 1)]), count <= 32 else { throw .refused }
            rest = rest[(feed + 1)...]
            guard !Self.mustNotTrail(field.name) else { continue }
            outcome.trailers.append("\(field.name):\(field.text)")
        }
        outcome.end = position
    }

    /// RFC 9110 §6.5.1: framing, routing, modifiers, authentication, control data, and how content is read.
    /// A CGI program reads an underscore as a hyphen.
    static func mustNotTrail(_ name: String) -> Bool {
        keptBack.contains(name) || keptBack.contains(String(name.map { $0 == "_" ? "-" : $0 }))
    }

    private static let keptBack: Set<String> = Oracle.hopByHop.union([
        "accept", "accept-encoding", "accept-language", "age", "allow", "authentication-info", "authorization",
        "cache-control", "content-encoding", "content-length", "content-location", "content-range", "content-type",
        "cookie", "date", "expect", "forwarded", "host", "if-modified-since", "if-none-match", "location",
        "max-forwards", "mfp-challenge", "mfp-conflict", "origin", "pragma", "range", "referer", "refresh",
        "retry-after", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user", "set-cookie",
        "user-agent", "vary", "via", "www-authenticate", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
    ])
}

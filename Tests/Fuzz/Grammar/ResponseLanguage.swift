// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// The bytes of an upstream's connection: interim heads, a final one, and its body.
struct ResponseLanguage: Language {
    static let name = "responses"

    var sentence = Sentence()
    private var text = ResponseText()
    private var chunks = ChunkedText()
    private var scanner = ResponseHeadScanner()
    private var interims: [ResponseText] = []

    mutating func write() {
        interims.removeAll(keepingCapacity: true)
        for _ in 0..<(sentence.choices.once(in: 8) ? sentence.choices.below(3) : 0) {
            text.write(&sentence, isInterim: true, mayBreak: false)
            interims.append(text)
        }
        text.write(&sentence, isInterim: false)
        if text.isBroken { return }
        if text.isChunked {
            chunks.write(&sentence)
        } else {
            sentence.putAnything(Int(min(text.length ?? UInt64(sentence.choices.below(30)), 40)))
        }
    }

    mutating func check() throws(Violation) {
        for interim in interims { try check(interim) }
        try check(text)
    }

    private mutating func check(_ text: ResponseText) throws(Violation) {
        let bytes = sentence.bytes
        do throws(WireError) {
            try scanner.scan(bytes.span.extracting(text.start..<text.end))
        } catch {
            try require(text.isBroken, "a head is refused: \(error.code)")
            try require(error.status == 502, "an upstream's fault is told as \(error.status)")
            return
        }
        try require(!text.isBroken, "a broken head is taken")
        let head = scanner.head
        try require(
            head.status == text.status && head.minorVersion == text.minorVersion
                && head.reason.count == text.reason.count
                && (head.reason == text.reason || text.reason.isEmpty), "the line is read otherwise")
        try require(head.contentLength == text.length && head.isChunked == text.isChunked, "another framing")
        try require(head.closes == text.closes, "it closes, or not")
        try require(head.fields.count == text.fields.count, "\(head.fields.count) fields")
        for index in text.fields.indices {
            let (line, field) = (head.fields[index], text.fields[index])
            try require(line.name == field.name && line.value == field.value, "field \(index) is elsewhere")
            try require(
                line.isHopByHop == (field.isHopByHop || text.isNominated(field)), "field \(index) goes on, or not")
        }
        if !scanner.head.isInterim, sentence.choices.once(in: 12) { try checkWritten(text) }
    }

    /// The caller gets the fields that are for it, in their order, and one framing.
    private mutating func checkWritten(_ text: ResponseText) throws(Violation) {
        var response = ForwardedResponse()
        let isHead = sentence.choices.once(in: 4)
        let version = sentence.choices.once(in: 4) ? HTTPVersion.http10 : .http11
        response.reset(isHead: isHead, version: version)
        var queue = ByteQueue()
        let bytes = Array(sentence.bytes[text.start..<text.end])
        let keepsAlive = response.writeHead(
            scanner.head, in: bytes.span, keepsAlive: true, to: &queue, date: { "Sat, 21 Nov 2026 16:00:00 GMT" },
            addresses: { nil })
        let written = queue.withSpan { $0.array }
        guard let (lines, end) = Oracle.section(written[...]), end == written.count else {
            throw Violation(description: "what the caller gets does not end with its head")
        }
        var expected: [[UInt8]] = []
        for field in text.fields where !field.isHopByHop && field.kind >= 0 && !text.isNominated(field) {
            expected.append(bytes[field.name.bounds].map { $0.lowercasedLetter } + [0x3A] + bytes[field.value.bounds])
        }
        if let length = text.length, text.status != 204 { expected.append(Array("content-length:\(length)".utf8)) }
        expected.append(Array("date:Sat, 21 Nov 2026 16:00:00 GMT".utf8))
        expected.append(Array("via:1.\(text.minorVersion == 0 ? 0 : 1) countersign".utf8))
        let isBodyless = isHead || text.status == 204 || text.status == 304
        let isUntilClose = !isBodyless && text.length == nil && version == .http10
        if !isBodyless, text.length == nil, version == .http11 {
            expected.append(Array("transfer-encoding:chunked".utf8))
        }
        if isUntilClose {
            expected.append(Array("connection:close".utf8))
        } else if version == .http10 {
            expected.append(Array("connection:keep-alive".utf8))
        }
        try require(keepsAlive == !isUntilClose, "the connection is kept, or not")
        guard text.status != 426 else { return }
        let fields = lines.dropFirst().map { line in Oracle.field(line).map { Array("\($0.name):".utf8) + $0.value } }
        try require(
            fields == expected.map(Optional.some), "the caller gets \(String(decoding: written, as: UTF8.self))")
        try require(
            lines.first?.starts(with: "HTTP/1.1 \(text.status) ".utf8) ?? false, "another status line")
    }
}

/// An upstream's answers on one connection, whole or cut, and unrequested bytes after them. The target finds out their
/// meaning.
struct AnswerLanguage: Language {
    static let name = "answers"
    static let period: UInt64 = 1

    var sentence = Sentence()
    private var text = ResponseText()
    private var chunks = ChunkedText()

    mutating func write() {
        for _ in 0..<(sentence.choices.once(in: 3) ? sentence.choices.below(4) : 0) {
            text.write(&sentence, isInterim: true, mayBreak: false)
        }
        text.write(&sentence, isInterim: false)
        guard !text.isBroken else { return }
        if text.isChunked {
            chunks.write(&sentence)
        } else {
            sentence.putAnything(Int(min(text.length ?? UInt64(sentence.choices.below(30)), 60)))
        }
        switch sentence.choices.below(8) {
        case 0: sentence.put("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        case 1: sentence.cut(to: sentence.choices.below(min(sentence.count, 60_000) + 1))
        default: break
        }
    }

    func check() {}
}

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

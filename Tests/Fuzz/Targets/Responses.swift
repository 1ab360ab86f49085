// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire

@testable import ChallengeClient
@testable import Proxy

/// Reads an upstream's connection: the raw lines of heads, interim ones first, then the body in its framing. The caller
/// must get exactly one response with that body, or one that does not look complete.
func fuzzResponses(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let bytes = input.array
    let caller = ResponseOracle.Caller(
        isHead: dice.below(4) == 0, version: dice.below(3) == 0 ? .http10 : .http11, takesTrailers: dice.flip(),
        isOnSession: dice.flip())
    var way = ResponseWay(caller: caller, addresses: dice.flip() ? .plain : .stripped)
    var start = 0
    for _ in 0..<8 {
        let end = Oracle.section(bytes[start...])?.end ?? bytes.count
        let raw = input.extracting(start..<end)
        var scanner = ResponseHeadScanner()
        do throws(WireError) {
            try scanner.scan(raw)
        } catch {
            try require(error.status == 502, "an upstream's fault is told as \(error.status)")
            return
        }
        try checkScan(scanner.head, Array(bytes[start..<end]))
        start = end
        if scanner.head.isInterim {
            way.interim(scanner.head, raw)
            continue
        }
        // Bytes after a 101 are not HTTP.
        guard scanner.head.status >= 200 else { return }
        let written = try way.final(scanner.head, raw, body: input.extracting(end..<input.count), &dice)
        try ResponseOracle(head: scanner.head, raw: raw.array, body: Array(bytes[end...]), caller: caller).check(
            written)
        return
    }
}

/// The response as it was written to the caller.
struct WrittenResponse {
    var output: [UInt8]
    /// True if all of it arrived, so that its end was written.
    var isWhole: Bool
    var keepsAlive: Bool
}

/// The way of a response, as transfer and caller's connection go it.
private struct ResponseWay: ~Copyable {
    private var response = ForwardedResponse()
    private var output = ByteQueue()
    private let caller: ResponseOracle.Caller
    private let addresses: ReverseMapping

    init(caller: ResponseOracle.Caller, addresses: ReverseMapping) {
        self.caller = caller
        self.addresses = addresses
        response.reset(isHead: caller.isHead, version: caller.version, acceptsTrailers: caller.takesTrailers)
        response.hidesAuthentication = caller.isOnSession
    }

    mutating func interim(_ head: ResponseHead, _ raw: Span<UInt8>) {
        response.writeInterim(head, in: raw, to: &output)
    }

    mutating func final(
        _ head: ResponseHead, _ raw: Span<UInt8>, body: Span<UInt8>, _ dice: inout Dice
    ) throws(Violation) -> WrittenResponse {
        let map = addresses
        let keepsAlive = response.writeHead(
            head, in: raw, keepsAlive: dice.flip(), to: &output, date: { "Sat, 21 Nov 2026 16:00:00 GMT" },
            addresses: { map })
        var answer = AnswerBody()
        answer.begin(behind: head, isBodyless: caller.isHead)
        var queue = ByteQueue()
        var start = 0
        var goesOn = true
        for end in dice.arrivals(body.count) where goesOn && !body.isEmpty && !answer.isWhole {
            if case .taken = answer.take(body.extracting(start..<end), into: &queue) {} else { goesOn = false }
            queue.withSpan { response.framing.write($0, to: &output) }
            queue.removeAll()
            start = end
        }
        let isWhole = answer.isWhole || (answer.isUntilEnd && dice.below(4) != 0)
        if isWhole, response.takesTrailers, !answer.trailers.isEmpty {
            response.beginTrailers(to: &output)
            answer.trailers.forEach { name, value in
                if !head.nominates(trailer: name, in: raw) { ResponseWriter.field(name, value, to: &output) }
            }
            response.endTrailers(to: &output)
        }
        if isWhole { response.writeEnd(to: &output) }
        return WrittenResponse(output: output.withSpan { $0.array }, isWhole: isWhole, keepsAlive: keepsAlive)
    }
}

extension ReverseMapping {
    /// Paths are the same on both sides.
    fileprivate static var plain: ReverseMapping {
        map(Router(fallback: "u"), base: "", prefix: "")
    }

    /// Maps `/a/…` of the upstream to `/p/…` of the listener.
    fileprivate static var stripped: ReverseMapping {
        map(
            Router(routes: [.init(path: "/p/", upstream: "u", stripsPrefix: true)], fallback: nil), base: "/a",
            prefix: "/p")
    }

    private static func map(_ router: Router, base: String, prefix: String) -> ReverseMapping {
        let place = MappedAddress(
            upstream: "u", origin: Origin(scheme: .https, host: "bank.example"), base: Array(base.utf8),
            prefix: Array(prefix.utf8))
        return ReverseMapping(authority: Array("localhost:8080".utf8), here: place, router: router) { [place] }
    }
}

/// Checks that each field of an accepted head is at its reported place.
private func checkScan(_ head: ResponseHead, _ raw: [UInt8]) throws(Violation) {
    try require((100...999).contains(head.status) && head.reason.end <= raw.count, "status \(head.status)")
    var rest = raw[...]
    var lines: [ArraySlice<UInt8>] = []
    while let feed = rest.firstIndex(of: 10) {
        try require(feed > rest.startIndex && rest[feed - 1] == 13, "a bare LF")
        lines.append(rest[..<(feed - 1)])
        rest = rest[(feed + 1)...]
    }
    if lines.last?.isEmpty == true { lines.removeLast() }
    try require(
        lines.count == head.fields.count + 1 && rest.isEmpty, "\(lines.count) lines, \(head.fields.count) fields")
    for (line, taken) in zip(lines.dropFirst(), head.fields) {
        guard let field = Oracle.field(line) else { throw Violation(description: "a line is no field") }
        try require(
            taken.name == ByteRange(start: line.startIndex, end: field.nameEnd)
                && taken.value == ByteRange(start: field.valueStart, end: field.valueStart + field.value.count),
            "\(field.name) is elsewhere")
    }
}

/// A reader of the caller's response after RFC 9112 §6.3, which compares that response with the upstream's.
struct ResponseOracle {
    /// The caller's request.
    struct Caller {
        var isHead: Bool
        var version: HTTPVersion
        var takesTrailers: Bool
        /// True if the proxy has sent a session of its own.
        var isOnSession: Bool
    }

    let head: ResponseHead
    let raw: [UInt8]
    /// The bytes after the head.
    let body: [UInt8]
    let caller: Caller

    /// The upstream's head and the caller's.
    private struct Heads {
        var sent: [Oracle.Field]
        var got: [Oracle.Field]

        func got(_ name: String) -> [Oracle.Field] { got.filter { $0.name == name } }
    }

    func check(_ written: WrittenResponse) throws(Violation) {
        var rest = written.output[...]
        while true {
            guard let (lines, end) = Oracle.section(rest), let status = lines.first else {
                throw Violation(description: "no head is written")
            }
            rest = rest[end...]
            var heads = Heads(sent: [], got: [])
            for line in lines.dropFirst() {
                guard let field = Oracle.field(line) else { throw Violation(description: "a line is no field") }
                heads.got.append(field)
            }
            try require(Oracle.isValue(status), "a control in the status line")
            if status.starts(with: "HTTP/1.1 1".utf8) {
                try checkInterim(heads)
                continue
            }
            try require(status.starts(with: "HTTP/1.1 \(head.status) ".utf8), "another status")
            let sent = raw.split(separator: 10).dropFirst().map { $0.last == 13 ? $0.dropLast() : $0 }
            heads.sent = sent.compactMap { Oracle.field($0) }
            try checkFields(heads, written)
            try checkBody(heads, rest, written)
            return
        }
    }

    private func checkInterim(_ heads: Heads) throws(Violation) {
        try require(caller.version == .http11, "an interim response to HTTP/1.0")
        for field in heads.got {
            try require(!Oracle.hopByHop.contains(field.name), "\(field.name) passes with an interim response")
            try require(field.name != "content-length", "an interim response with a length")
        }
    }

    /// Returns the upstream's body after RFC 9112 §6.3, and whether it is complete; `nil` if only the connection ends it.
    private func sentBody() -> (bytes: [UInt8], isWhole: Bool?) {
        if caller.isHead || head.status == 204 || head.status == 304 { return ([], true) }
        if head.isChunked {
            let read = ChunkOracle.read(body)
            return (read.data, read.end != nil)
        }
        guard let length = head.contentLength else { return (body, nil) }
        let count = Int(min(length, UInt64(body.count)))
        return (Array(body.prefix(count)), UInt64(count) == length)
    }

    private func checkFields(_ heads: Heads, _ written: WrittenResponse) throws(Violation) {
        let named = heads.sent.filter { $0.name == "connection" }.flatMap(\.members)
        let own: Set<String> = ["connection", "content-length", "transfer-encoding", "upgrade", "via"]
        for field in heads.got where !own.contains(field.name) {
            let isAnnouncement = field.name == "trailer" && caller.takesTrailers && caller.version == .http11
            try require(isAnnouncement || !Oracle.hopByHop.contains(field.name), "\(field.name) passes")
            try require(!named.contains(field.name), "\(field.name) passes, which Connection names")
        }
        let tells =
            !heads.got("authentication-info").isEmpty
            || !heads.got("www-authenticate").isEmpty && head.status != 401 && head.status != 403
        try require(!tells || !caller.isOnSession, "what concerns our session passes")
        // Only the answer that asks for an upgrade names the protocol (RFC 9110 §15.5.22).
        try require(head.status == 426 || heads.got("upgrade").isEmpty, "Upgrade passes")
        let options = heads.got("connection").flatMap(\.members).filter { head.status != 426 || $0 != "upgrade" }
        if caller.version == .http11 {
            try require(options == (written.keepsAlive ? [] : ["close"]), "Connection: \(options) to HTTP/1.1")
        } else {
            try require(options == (written.keepsAlive ? ["keep-alive"] : ["close"]), "Connection: \(options) to 1.0")
        }
        try require(heads.got("via").last?.text.hasSuffix(" countersign") == true, "Via does not name us last")
    }

    private func checkBody(
        _ heads: Heads, _ bytes: ArraySlice<UInt8>, _ written: WrittenResponse
    ) throws(Violation) {
        let lengths = heads.got("content-length")
        let codings = heads.got("transfer-encoding")
        try require(lengths.count <= 1 && codings.count <= 1, "a length is written twice")
        try require(lengths.isEmpty || codings.isEmpty, "two lengths are written")
        try require(codings.isEmpty || codings[0].text == "chunked", "another coding")
        try require(codings.isEmpty || caller.version == .http11, "chunks to HTTP/1.0")
        if head.status == 204 { try require(lengths.isEmpty && codings.isEmpty, "204 with a length") }
        if let length = lengths.first { try require(length.number == head.contentLength, "another length") }
        let sent = sentBody()
        if let isWhole = sent.isWhole { try require(written.isWhole == isWhole, "whole or not: \(isWhole)") }
        if caller.isHead || head.status == 204 || head.status == 304 {
            try require(bytes.isEmpty, "a body where there is none")
        } else if !codings.isEmpty {
            let read = ChunkOracle.read(Array(bytes))
            try require(!read.isRefused && read.data == sent.bytes, "the chunks hold something else")
            try require(read.end == (written.isWhole ? bytes.count : nil), "the chunks end elsewhere")
            let trailers = head.isChunked && caller.takesTrailers ? ChunkOracle.read(body).trailers : []
            try require(read.trailers.allSatisfy(trailers.contains), "trailers that nobody sent, or wants")
        } else if let length = lengths.first?.number {
            try require(Array(bytes) == sent.bytes, "another body")
            try require(written.isWhole ? bytes.count == length : bytes.count < length, "the body ends elsewhere")
        } else {
            // Here the end of the connection ends the body.
            try require(Array(bytes) == sent.bytes && !written.keepsAlive, "an open body on a kept connection")
        }
    }
}

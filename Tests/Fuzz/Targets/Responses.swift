// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire

@testable import ChallengeClient
@testable import Proxy

/// What comes over an upstream's connection: the raw lines of heads, interim ones first, then the body in its framing. What
/// a caller gets of it must be exactly one response with that body, or must not look complete.
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
        // What follows 101 is no HTTP.
        guard scanner.head.status >= 200 else { return }
        let written = try way.final(scanner.head, raw, body: input.extracting(end..<input.count), &dice)
        try ResponseOracle(head: scanner.head, raw: raw.array, body: Array(bytes[end...]), caller: caller).check(
            written)
        return
    }
}

/// What came of it.
struct WrittenResponse {
    var output: [UInt8]
    /// Whether all of it was there, so that its end was written.
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

    /// What is `/a/…` there is `/p/…` here.
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

/// Every field of a head that is taken stands where it is said to stand.
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

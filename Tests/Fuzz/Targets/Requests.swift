// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// A connection's bytes: requests with their bodies, one after the other.
func fuzzRequests(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let limits = dice.flip() ? HeadLimits() : HeadLimits(line: 64, head: 256, fieldCount: 4)
    var whole = CallerSide(limits: limits)
    try whole.read(input, arrivals: [input.count], checked: true)
    // A copy of exactly the bytes that are there: the parser may read no others.
    var cut = CallerSide(limits: limits)
    try cut.read(input, arrivals: dice.arrivals(input.count), checked: false)
    try require(whole.facts == cut.facts, "in pieces it reads otherwise: \(whole.facts) and \(cut.facts)")
    try require(whole.data == cut.data, "in pieces the bodies are others")
}

/// The result of a connection, as numbers to compare.
private struct CallerSide {
    var facts: [Int] = []
    var data: [UInt8] = []
    private var parser: RequestHeadParser
    private var body: BodyDecoder?
    private var start = 0

    init(limits: HeadLimits) {
        parser = RequestHeadParser(limits: limits)
    }

    mutating func read(_ bytes: Span<UInt8>, arrivals: [Int], checked: Bool) throws(Violation) {
        for end in arrivals {
            while try step(bytes.extracting(start..<end), checked: checked) {}
            if facts.last == -1 { return }
        }
    }

    /// Returns true if there may be more to do with these bytes.
    private mutating func step(_ window: Span<UInt8>, checked: Bool) throws(Violation) -> Bool {
        if var decoder = body {
            let result = try step(window, &decoder)
            if body != nil { body = decoder }
            return result
        }
        switch parser.parse(window) {
        case .incomplete:
            return false
        case .refused(let error):
            try require(parser.parse(window) == .refused(error), "a refusal is not final")
            refuse(error)
            return false
        case .complete(let length):
            try require(length > 0 && length <= window.count, "the head is \(length) bytes long, of \(window.count)")
            if checked {
                try HeadOracle.check(parser.head, window.extracting(first: length).array)
                try checkAdmission(window)
                try checkAuthRequest(parser.head, window)
            }
            note(parser.head, length: length)
            body = BodyDecoder(framing: parser.head.body)
            start += length
            return true
        }
    }

    private mutating func step(_ window: Span<UInt8>, _ decoder: inout BodyDecoder) throws(Violation) -> Bool {
        switch decoder.decode(window) {
        case .data(let range, let consumed):
            try require(
                consumed > 0 && consumed <= window.count && range.end <= consumed && !range.isEmpty,
                "data \(range) in \(consumed) bytes of \(window.count)")
            data += window.copy(range)
            start += consumed
            return true
        case .needMore(let consumed):
            try require((0...window.count).contains(consumed), "\(consumed) of \(window.count) bytes are done with")
            start += consumed
            return false
        case .end(let consumed):
            try require((0...window.count).contains(consumed), "\(consumed) of \(window.count) bytes are done with")
            for line in decoder.trailers {
                try require(line.value.end <= consumed, "a trailer is beyond the body")
                data += window.copy(line.name) + window.copy(line.value)
            }
            start += consumed
            facts += [data.count, start]
            body = nil
            parser.reset()
            return true
        case .refused(let error):
            refuse(error)
            return false
        }
    }

    /// Checks that an admitted request asks for a served resource, of a served host.
    private func checkAdmission(_ window: Span<UInt8>) throws(Violation) {
        let head = parser.head
        switch Admission.decide(head, in: window, plan: openListener, user: nil) {
        case .admitted(let destination):
            try require(destination == Router.Destination(upstream: "u"), "it goes to \(destination)")
            try require(head.method != .connect && head.method != .trace, "\(head.method) is let in")
            try require(head.expectation != .unknown, "an unknown expectation is let in")
            if let authority = head.authority {
                try require(openListener.hosts.accepts(authority, in: window), "a strange host is let in")
            }
        case .answered:
            try require(head.method == .options, "\(head.method) is answered")
        case .refused(let reply):
            try require((400...599).contains(reply.status), "refused by \(reply.status)")
        }
    }

    private mutating func refuse(_ error: WireError) {
        facts += [error.status, error.code.rawValue.hashValue, -1]
    }

    private mutating func note(_ head: RequestHead, length: Int) {
        func flag(_ flag: Bool) -> Int { flag ? 1 : 0 }
        facts += [
            length, Int(head.method.rawValue), head.methodRange.end, head.target.range.start, head.target.range.end,
            head.target.path.end, head.authority?.start ?? -2, head.authority?.end ?? -2, flag(head.version == .http11),
            flag(head.keepsAlive), flag(head.expectsContinue), flag(head.acceptsTrailers), flag(head.requestsUpgrade),
        ]
        switch head.body {
        case .none: facts.append(-3)
        case .length(let length): facts.append(Int(clamping: length))
        case .chunked: facts.append(-4)
        }
        for line in head.fields {
            facts += [line.name.start, line.name.end, line.value.start, line.value.end, flag(line.isHopByHop)]
            facts.append(Int(line.kind.rawValue))
        }
    }
}

private let openListener = ListenerPlan(
    name: "l", service: .proxy, router: Router(fallback: "u"), hosts: HostPolicy(names: ["a"]))

/// Checks that the request in an auth request is read as if its caller had sent it to us.
func checkAuthRequest(_ head: RequestHead, _ bytes: Span<UInt8>) throws(Violation) {
    guard let original = try? head.original(in: bytes) else { return }
    let path = bytes.copy(original.target.path)
    try require(path.first == UInt8(ascii: "/"), "the path in question begins with no slash")
    try require(original.body.isEmpty, "the request in question has a body")
    // With CONNECT a path is not a valid target; admission refuses the method.
    guard original.method != .connect, let host = original.authority else { return }
    let line = bytes.copy(original.methodRange) + [0x20] + bytes.copy(original.target.pathAndQuery)
    let text = line + Array(" HTTP/1.1\r\nHost: ".utf8) + bytes.copy(host) + Array("\r\n\r\n".utf8)
    var parser = RequestHeadParser(limits: HeadLimits(line: 1 << 20, head: 1 << 20))
    guard case .complete = parser.parse(text.span) else {
        throw Violation(
            description: "the request in question could not be sent: \(String(decoding: text, as: UTF8.self))")
    }
    try require(parser.head.method == original.method, "its method is \(original.method)")
    try require(text.span.copy(parser.head.target.path) == path, "its path ends elsewhere")
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import HTTPWire

@testable import ChallengeClient

/// Reads an upstream's bytes by the machine of their connection into a transfer. However the bytes are cut, the answer
/// is the one that an oracle reads, and never more of a body than its framing allows. Nothing that happens meanwhile
/// traps.
func fuzzAnswers(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let kind = FuzzedClient.Kind.allCases[dice.below(FuzzedClient.Kind.allCases.count)]
    guard let loop = try? EventLoop(), let driver = try? CurlDriver(loop: loop, connections: 1) else {
        throw Violation(description: "no loop can be made")
    }
    let oracle = AnswerOracle(input.array, isHeadRequest: kind == .head)
    let whole = FuzzedClient(kind, loop, driver)
    try whole.receive(input, arrivals: [input.count])
    try check(whole, oracle, kind, count: input.count)
    let cut = FuzzedClient(kind, loop, driver)
    try cut.receive(input, arrivals: dice.arrivals(input.count))
    try check(cut, oracle, kind, count: input.count)
    var facts = cut.facts
    if oracle.mayStopBody(of: kind), facts.end == .kept { facts.end = whole.facts.end }
    try require(whole.facts == facts, "in pieces it reads otherwise: \(whole.facts) and \(cut.facts)")
    let disturbed = FuzzedClient(kind, loop, driver)
    try disturbed.receive(input, arrivals: dice.arrivals(input.count), disturbedBy: &dice)
}

/// Compares the result with the oracle's.
private func check(
    _ client: FuzzedClient, _ oracle: AnswerOracle, _ kind: FuzzedClient.Kind, count: Int
) throws(Violation) {
    let facts = client.facts
    try require(oracle.interims.starts(with: facts.interims), "interim heads \(facts.interims)")
    guard !facts.head.isEmpty else {
        try require(facts.end == .failed && facts.body.isEmpty, "an answer without a head")
        return
    }
    try require(facts.head == oracle.head && facts.status == oracle.status, "another head")
    try require(facts.interims == oracle.interims, "an interim head is lost")
    if facts.end == .switched {
        try require(kind == .upgrade && facts.status == 101, "another protocol that nobody asked for")
        try require(client.unread == count - oracle.headEnd, "bytes of another protocol are lost")
        return
    }
    try require(facts.body == oracle.body, "\(facts.body.count) bytes of a body of \(oracle.body.count)")
    try require((facts.end != .failed) == oracle.isWhole, "whole or not: \(oracle.isWhole)")
    let isSent = kind == .expecting ? oracle.interims.contains(100) : kind != .silent
    // A 100 and an answer that breaks a rule leave no moment for the body if both come at once.
    let isBrokenAtOnce = kind == .expecting && facts.end == .failed
    try require(
        client.isSent == isSent || isBrokenAtOnce || oracle.mayStopBody(of: kind),
        "the request's body has gone, or not: \(isSent)")
    let stays = oracle.isPersistent && oracle.rest == 0 && client.isSent && kind != .upgrade
    try require((facts.end == .kept) == stays, "the connection takes another request, or not: \(stays)")
}

extension AnswerOracle {
    /// Returns true if a refusal that comes together with a 100 stops the body that waited for the 100: then nothing of
    /// the body was sent.
    fileprivate func mayStopBody(of kind: FuzzedClient.Kind) -> Bool {
        kind == .expecting && interims.contains(100) && status >= 300
    }
}

/// The answer in the bytes of an upstream's connection, read slowly after RFC 9112 §6.3.
struct AnswerOracle {
    /// The statuses of the interim heads before the final one.
    private(set) var interims: [Int] = []
    /// The final head with its empty line; `nil` if it is not complete.
    private(set) var head: [UInt8]?
    /// The number of bytes up to the end of the final head.
    private(set) var headEnd = 0
    private(set) var status = 0
    private(set) var body: [UInt8] = []
    /// The number of bytes after the answer; `nil` if it does not end by itself, or has not ended.
    private(set) var rest: Int?
    /// True if only the end of the connection ends the body.
    private(set) var isUntilEnd = false
    /// True if the connection may take another request, according to the head (RFC 9112 §9.3).
    private(set) var isPersistent = false

    /// True if the answer is whole when the connection ends here.
    var isWhole: Bool { rest != nil || isUntilEnd }

    init(_ bytes: [UInt8], isHeadRequest: Bool) {
        var start = 0
        while let (lines, end) = Oracle.section(bytes[start...]), let line = lines.first,
            let status = Int(String(decoding: line.dropFirst(9).prefix(3), as: UTF8.self))
        {
            defer { start = end }
            if status < 200, status != 101 {
                interims.append(status)
                continue
            }
            self.status = status
            head = Array(bytes[start..<end])
            headEnd = end
            let fields = lines.dropFirst().compactMap(Oracle.field)
            let closes = fields.contains { $0.name == "connection" && $0.members.contains("close") }
            isPersistent = !line.starts(with: "HTTP/1.0".utf8) && !closes
            frame(bytes[end...], fields, isHeadRequest: isHeadRequest)
            return
        }
    }

    private mutating func frame(_ bytes: ArraySlice<UInt8>, _ fields: [Oracle.Field], isHeadRequest: Bool) {
        if isHeadRequest || status == 204 || status == 304 {
            rest = bytes.count
        } else if fields.contains(where: { $0.name == "transfer-encoding" }) {
            let read = ChunkOracle.read(Array(bytes))
            body = read.data
            rest = read.end.map { bytes.count - $0 }
        } else if let field = fields.first(where: { $0.name == "content-length" }) {
            let length = field.members.first { !$0.isEmpty }.flatMap(UInt64.init) ?? 0
            body = Array(bytes.prefix(Int(min(length, UInt64(bytes.count)))))
            if UInt64(body.count) == length { rest = bytes.count - body.count }
        } else {
            body = Array(bytes)
            isUntilEnd = true
        }
    }
}

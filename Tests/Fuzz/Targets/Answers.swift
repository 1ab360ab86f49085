// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import HTTPWire

@testable import ChallengeClient

/// What an upstream sends on a connection, read by the machine of that connection into a transfer: the same answer however it is cut,
/// the one that an oracle reads, never more of a body than its framing says; and no trap, whatever else happens meanwhile.
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

/// Compares what was read with what the oracle reads.
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
    // A 100 and an answer that breaks a rule, if both come at once, leave no moment for the body.
    let isBrokenAtOnce = kind == .expecting && facts.end == .failed
    try require(
        client.isSent == isSent || isBrokenAtOnce || oracle.mayStopBody(of: kind),
        "the request's body has gone, or not: \(isSent)")
    let stays = oracle.isPersistent && oracle.rest == 0 && client.isSent && kind != .upgrade
    try require((facts.end == .kept) == stays, "the connection takes another request, or not: \(stays)")
}

extension AnswerOracle {
    /// True if a refusal stops a body that has waited for 100, if both come at once: then nothing of it has gone.
    fileprivate func mayStopBody(of kind: FuzzedClient.Kind) -> Bool {
        kind == .expecting && interims.contains(100) && status >= 300
    }
}

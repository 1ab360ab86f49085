// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// Feeds a caller's bytes to the machine that serves its connection. The result is equal however the bytes are cut, and
/// nothing that happens meanwhile traps.
func fuzzConnections(_ input: Span<UInt8>) throws(Violation) {
    var dice = Dice(input)
    let limits = dice.flip() ? HeadLimits() : HeadLimits(line: 64, head: 256, fieldCount: 4)
    var whole = FuzzedServer(limits: limits)
    try whole.receive(input, arrivals: [input.count])
    var cut = FuzzedServer(limits: limits)
    try cut.receive(input, arrivals: dice.arrivals(input.count))
    try require(whole.facts == cut.facts, "in pieces it is served otherwise: \(whole.facts) and \(cut.facts)")
    try require(whole.data == cut.data, "in pieces the bodies are others")
    var disturbed = FuzzedServer(limits: limits)
    try disturbed.receive(input, arrivals: dice.arrivals(input.count), disturbedBy: &dice)
}

/// Carries out what a machine decides, and notes it as numbers to compare. By the length of its target a request gets a response as
/// it comes, a reply, or a reply that is made later.
private struct FuzzedServer: ~Copyable {
    private(set) var facts: [Int] = []
    private(set) var data: [UInt8] = []
    private var machine: HTTP1ServerMachine
    private var start = 0
    private var isAwaited = false

    init(limits: HeadLimits) {
        machine = HTTP1ServerMachine(limits: limits, bodyPace: 16, trapsMisuse: false)
    }

    mutating func receive(_ bytes: Span<UInt8>, arrivals: [Int]) throws(Violation) {
        for end in arrivals { try read(bytes, upTo: end) }
        // Bytes produced later are there when all has arrived.
        while isAwaited {
            makeAnswer()
            try read(bytes, upTo: bytes.count)
        }
        let last = machine.inputEnded(.init(isInputEmpty: start == bytes.count, isOutputEmpty: true))
        facts.append(last == .close ? 100 : last == .nothing ? 101 : last == .breakOff ? 102 : 103)
        try require(machine.misuses == 0, "an event came that the machine does not allow")
    }

    /// Reads with any other event between two steps.
    mutating func receive(
        _ bytes: Span<UInt8>, arrivals: [Int], disturbedBy dice: inout Dice
    ) throws(Violation) {
        for end in arrivals {
            var steps = 0
            while try step(bytes.extracting(start..<end)) {
                steps += 1
                try require(steps <= 2 * (end + 64), "it goes on without end")
                if dice.below(4) == 0 { happen(dice.below(16), isEmpty: dice.flip()) }
            }
            happen(dice.below(16), isEmpty: dice.flip())
        }
    }

    private mutating func read(_ bytes: Span<UInt8>, upTo end: Int) throws(Violation) {
        var steps = 0
        while try step(bytes.extracting(start..<end)) {
            steps += 1
            try require(steps <= 2 * (end + 64), "it goes on without end")
        }
    }

    /// Returns true if there may be more to do with these bytes.
    private mutating func step(_ window: Span<UInt8>) throws(Violation) -> Bool {
        let action = machine.read(window, isOutputFull: false, wantsBody: true)
        switch action {
        case .wait: return false
        case .takeHead(let length):
            try take(length, of: window)
            begin()
        case .takeBody(let range, let consumed):
            try require(range.end <= consumed, "a body of \(range) in \(consumed) bytes")
            data += window.copy(range)
            try take(consumed, of: window)
        case .skip(let consumed): try take(consumed, of: window)
        case .await(let consumed):
            try take(consumed, of: window)
            return false
        case .endBody(let consumed):
            for line in machine.trailers {
                try require(line.value.end <= window.count, "a trailer lies beyond what has come")
            }
            facts += [2, machine.trailers.count]
            try take(consumed, of: window)
            finish(3)
        case .writeAnswer(let consumed):
            try take(consumed, of: window)
            write()
        case .refuseHead:
            facts.append(4)
            answer()
        case .refuseBody:
            facts.append(5)
            isAwaited = false
            switch machine.breakOff() {
            case .refuse: answer()
            case .finish: finish(6)
            case .reset: machine.close()
            }
        }
        return true
    }

    private mutating func take(_ count: Int, of window: Span<UInt8>) throws(Violation) {
        try require((0...window.count).contains(count), "\(count) of \(window.count) bytes are done with")
        start += count
    }

    private mutating func begin() {
        let target = machine.withHead { $0.target.pathAndQuery }
        facts += [1, target.end - target.start]
        switch (target.end - target.start) % 3 {
        case 0: answer()
        case 1:
            machine.accept(isInputEmpty: false)
            if machine.isBodyComplete { finish(3) }
        default:
            machine.awaitAnswer()
            isAwaited = true
            // One of a request without a body is there at once.
            if machine.isBodyComplete { makeAnswer() }
        }
    }

    private mutating func makeAnswer() {
        isAwaited = false
        answer()
    }

    private mutating func answer() {
        if machine.answer() == .write { write() }
    }

    private mutating func write() {
        _ = machine.writesWholeResponse()
        finish(6)
    }

    private mutating func finish(_ fact: Int) {
        isAwaited = false
        facts += [fact, machine.finish(mayStayOpen: true) == .readNext ? 1 : 0]
    }

    /// Has something else happen, be it allowed or not.
    private mutating func happen(_ event: Int, isEmpty: Bool) {
        let waiting = HTTP1ServerMachine.Waiting(isInputEmpty: isEmpty, isOutputEmpty: !isEmpty)
        switch event {
        case 0: _ = machine.timeLimitPassed(waiting, isInputNew: isEmpty)
        case 1: _ = machine.inputEnded(waiting)
        case 2: _ = machine.outputIsWritten(isInputEmpty: isEmpty)
        case 3: _ = machine.drain(waiting, hasMore: isEmpty)
        case 4: _ = machine.drainIsOver()
        case 5: _ = machine.breakOff()
        case 6: _ = machine.finish(mayStayOpen: isEmpty)
        case 7: machine.accept(isInputEmpty: isEmpty)
        case 8: _ = machine.answer()
        case 9: machine.responseBegan(keepsAlive: isEmpty, endsWithConnection: !isEmpty)
        case 10: machine.responseIsWhole()
        case 11: _ = machine.bodyIsWanted()
        case 12: machine.awaitAnswer()
        case 13: machine.releaseMemory(limits: HeadLimits())
        case 14: _ = machine.takeTimeLimit()
        default: _ = machine.vacancy(waiting)
        }
    }
}

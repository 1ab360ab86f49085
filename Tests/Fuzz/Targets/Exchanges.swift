// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

@testable import ChallengeClient

/// Drives the machine of an exchange: an upstream, logins and a caller act as the bytes say, in any order that its
/// driver can bring about. Nothing is sent or delivered twice, every session that was tried gets a verdict, and the
/// exchange ends.
func fuzzExchanges(_ input: Span<UInt8>) throws(Violation) {
    var play = ExchangePlay(input.array)
    try play.run()
}

/// A checker of valid sequences of events.
private struct ExchangeWatch {
    var sends = 0
    var deliveries = 0
    var ends = 0
    /// True while a transfer carries the request and its answer is not over.
    var isRunning = false
    /// The unverified sessions that are tried and not judged.
    var tried: Set<Int> = []

    mutating func send() throws(Violation) {
        try require(deliveries == 0, "sent again after an answer had gone out")
        try require(!isRunning, "sent again before the answer was complete")
        sends += 1
        isRunning = true
    }

    mutating func deliver() throws(Violation) {
        try require(isRunning && deliveries == 0, "delivered without a transfer, or twice")
        deliveries += 1
    }

    mutating func end(delivered: Int) throws(Violation) {
        try require(deliveries == delivered, "ended as what it is not")
        try require(ends == 0, "ended twice")
        ends += 1
        isRunning = false
    }

    func check() throws(Violation) {
        // One at the beginning, one per round and per conflict, one per connection or session that had ended, and one
        // per request sent in another way.
        let most =
            3 + ExchangeMachine.maxRounds + ExchangeMachine.maxConflicts + ExchangeMachine.maxResends
            + ExchangeMachine.maxWithdrawals
        try require(sends <= most, "sent \(sends) times")
    }
}

/// One exchange, and peers that take their choices from bytes.
private struct ExchangePlay: ~Copyable {
    private var machine = ExchangeMachine(expectsContinue: true)
    private var watch = ExchangeWatch()
    private let bytes: [UInt8]
    private var position = 0
    private let lost = ExchangeError(.upstreamUnreachable, detail: "lost")
    private var setbacks: Set<String> = []

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func run() throws(Violation) {
        try perform(machine.start(missing: slot()))
        while !machine.state.hasEnded, position < bytes.count {
            try step()
            try settle()
            try watch.check()
        }
        if !machine.state.hasEnded { try perform(machine.failed(lost)) }
        try settle()
        try require(watch.ends == 1, "over without an end")
        try require(watch.tried.isEmpty, "a session that was tried is never judged")
        let (rounds, misuses) = (machine.rounds, machine.misuses)
        try require(rounds <= ExchangeMachine.maxRounds, "\(rounds) rounds")
        try require(misuses == 0, "an event that its state does not allow")
    }

    private mutating func settle() throws(Violation) {
        while let judgement = machine.nextVerdict() {
            try require(watch.tried.remove(judgement.slot) != nil, "a session is judged that is not tried")
        }
        _ = machine.takeConcludedChallenge()
    }

    private mutating func step() throws(Violation) {
        if below(32) == 31 { return try perform(machine.failed(lost)) }
        switch machine.state {
        case .idle, .ended: break
        case .waiting(let slot): try answerLogin(slot)
        case .reading: try read()
        case .sending: try answer()
        case .examining: try perform(machine.headReceived(head()))
        case .holding(let slot): try confirm(slot)
        case .looking: try look()
        case .settling:
            guard flip() else { return try end(flip() ? .broken(lost, resend: .always) : .complete) }
            let action = machine.swallowed(below(100), limit: 100)
            // A longer one is cut off.
            if action != .wait { watch.isRunning = false }
            try perform(action)
        case .passing:
            let isWhole = flip()
            if isWhole { try perform(machine.answerWhole(isRefusal: flip())) } else { try end(.complete) }
        case .finishing: try end(flip() ? .broken(lost, resend: .never) : .complete)
        }
    }

    private mutating func answerLogin(_ slot: Int) throws(Violation) {
        switch below(7) {
        case 0: try perform(machine.sessionFailed(lost))
        case 1: try perform(machine.askAgain())
        case 2, 3:
            watch.tried.insert(slot)
            let other = other(than: slot)
            try perform(machine.sessionReady(.init(isNew: true, isUnverified: true), missing: other))
        case 4:
            let (isHidden, missing) = (flip(), self.slot())
            try perform(machine.sessionReady(.init(isNew: true, isHidden: isHidden), missing: missing))
        default:
            let (isNew, other) = (flip(), other(than: slot))
            try perform(machine.sessionReady(.init(isNew: isNew), missing: other))
        }
    }

    private mutating func read() throws(Violation) {
        let steps: [BodyProgress.Step] = [.done, .more, .needsInput, .lost]
        let step = steps[below(4)]
        if machine.bodyRead(step) == .refuse { try perform(machine.failed(.bodyNotReplayable)) }
    }

    private mutating func answer() throws(Violation) {
        switch below(12) {
        case 0: try perform(machine.switched())
        case 1: try end(flip() ? .withdrawn(.outrun) : .broken(lost, resend: .ifIdempotent))
        // The driver meets each of the two once at most: the next sending is another one.
        case 2 where setbacks.insert("expectation").inserted: try end(.expectationRefused)
        case 3 where setbacks.insert("unbound").inserted: try end(.unbound)
        case 4: try end(.lost(lost))
        case 5: try end(.complete)
        case 6:
            let (wasContinued, hasWaited) = (flip(), flip())
            _ = machine.bodyIsTaken(wasContinued: wasContinued, hasWaited: hasWaited)
        default: try perform(machine.headReceived(head()))
        }
    }

    /// Returns a server's answer, which is seldom a success.
    private mutating func head() -> ExaminedAnswer {
        let challenges: [Challenge] = [
            .challenged(), .pass, .replay, .stale, .needsBody, .refused, .challenged(), .replay,
        ]
        var answer = ExaminedAnswer(challenges[below(8)], slot: below(3), status: [200, 401, 503][below(3)])
        let flags = below(256)
        answer.mayRepeat = flags & 1 != 0
        answer.isKnownRefusal = flags & 2 != 0
        answer.carriesConfirmable = flags & 4 != 0
        answer.carriesSpendable = flags & 8 != 0
        answer.isHidden = flags & 16 != 0
        answer.bindsConnection = flags & 32 != 0
        answer.canReplay = flags & 192 != 192
        answer.concealment = flags & 97 == 97 ? .open : .none
        return answer
    }

    private mutating func confirm(_ slot: Int) throws(Violation) {
        switch below(4) {
        case 0:
            machine.confirmationIsAwaited()
            watch.tried.remove(slot)
        case 1: try perform(machine.sessionKept())
        case 2: try perform(machine.sessionRejected(lost))
        default: try perform(machine.sessionOver(canReplay: flip()))
        }
    }

    private mutating func look() throws(Violation) {
        if flip() { return machine.pageIsFound() }
        try perform(machine.pageIsAbsent(isKnown: flip()))
    }

    private mutating func end(_ end: ExchangeMachine.TransferEnd) throws(Violation) {
        watch.isRunning = false
        let (canReplay, isIdempotent) = (flip(), flip())
        try perform(machine.transferEnded(end, canReplay: canReplay, isIdempotent: isIdempotent))
    }

    // MARK: Actions

    private mutating func perform(_ action: ExchangeMachine.BeginAction) throws(Violation) {
        switch action {
        case .fail: try watch.end(delivered: 0)
        case .logIn, .wait: break
        case .send: try send()
        }
    }

    private mutating func send() throws(Violation) {
        try watch.send()
        if below(6) == 5 { machine.bodyIsUnread() } else { machine.requestIsSent() }
    }

    private mutating func perform(_ action: ExchangeMachine.AnswerAction) throws(Violation) {
        switch action {
        case .deliver: try watch.deliver()
        case .giveUp, .handOver: try watch.end(delivered: 0)
        case .confirm, .discard, .examineBody, .look, .wait: break
        }
    }

    private mutating func perform(_ action: ExchangeMachine.EndAction) throws(Violation) {
        switch action {
        case .complete: try require(watch.deliveries == 1, "completed a response that had not begun")
        case .fail: try watch.end(delivered: 0)
        case .finish, .truncate: try watch.end(delivered: 1)
        case .logIn: watch.isRunning = false
        case .send: try send()
        case .wait: break
        }
    }

    private mutating func perform(_ action: ExchangeMachine.BreakAction) throws(Violation) {
        switch action {
        case .fail: try watch.end(delivered: 0)
        case .finish, .truncate: try watch.end(delivered: 1)
        case .wait: break
        }
    }

    // MARK: Choices

    /// Returns a choice of `count`; the first when no bytes are left.
    private mutating func below(_ count: Int) -> Int {
        guard position < bytes.count else { return 0 }
        defer { position += 1 }
        return Int(bytes[position]) % count
    }

    private mutating func flip() -> Bool { below(2) == 1 }

    private mutating func slot() -> Int? { flip() ? below(3) : nil }

    /// Returns another missing slot, other than those tried already, as the driver leaves those out.
    private mutating func other(than slot: Int) -> Int? {
        guard let other = self.slot(), other != slot, !watch.tried.contains(other) else { return nil }
        return other
    }
}

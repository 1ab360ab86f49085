// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// A machine with a clock that the test sets, for tests that read as what happens and what is done.
struct FleetHost {
    typealias Event = FleetMachine.Event
    typealias Action = FleetMachine.Action

    var machine: FleetMachine
    var now: Int64 = 1_000
    var chance = 0.5

    init(isEngineThere: Bool = true, present: UInt64 = 0) {
        machine = FleetMachine(isEngineThere: isEngineThere, present: present)
    }

    mutating func on(_ event: Event) -> [Action] { machine.handle(event, now: now, chance: chance) }

    mutating func answer(_ reply: EngineReply?, latches: UInt64 = 0) -> [Action] {
        on(.answered(reply, latches: latches))
    }

    /// A session is wanted, with the token `t`.
    mutating func want(after: UInt64 = 0, isRenewal: Bool = false, token: String = "t") -> [Action] {
        on(.want(after: after, isRenewal: isRenewal, token: LeaseToken(token)))
    }

    /// The timer fires when it is due; empty where it is not set.
    mutating func fire() -> [Action] {
        guard let due = machine.due else { return [] }
        now = max(now, due)
        return on(.timer)
    }

    /// A login runs under a lease of that generation.
    static func loggingIn(_ generation: UInt64 = 5) -> FleetHost {
        var host = FleetHost()
        _ = host.want()
        _ = host.answer(.granted(generation: generation, latches: 0))
        return host
    }

    static let life = FleetTimes().lease

    static func acquire(after: UInt64 = 0, token: String = "t") -> Action {
        .ask(.acquire(after: after, token: LeaseToken(token), life: life))
    }

    static func extend(_ generation: UInt64, token: String = "t") -> Action {
        .ask(.extend(token: LeaseToken(token), generation: generation, life: life))
    }

    static func publish(_ generation: UInt64, _ session: [UInt8], life: Duration, token: String = "t") -> Action {
        .ask(.publish(token: LeaseToken(token), generation: generation, session: session, life: life))
    }

    static func release(_ generation: UInt64, token: String = "t") -> Action {
        .ask(
            .fail(
                token: LeaseToken(token), generation: generation, failure: [], pause: .zero, longest: .zero,
                latches: []))
    }
}

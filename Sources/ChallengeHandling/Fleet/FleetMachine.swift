// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How one host comes to the session of one key that the fleet shares: who logs in, who waits for it, what becomes of it when the
/// engine does not answer.
///
/// A value without I/O, clock or chance: each event brings `now` (milliseconds of a clock that never goes back) and a random number in
/// 0..<1. After each event the driver carries out the actions in their order and sets its timer to `due`.
///
/// - At most one request is under way; the driver reports what was answered, or `nil`, by `answered`. Nothing is asked meanwhile.
/// - A lease is asked for with the token of `want` until a login has begun, and never after: no two logins for one grant. One that is
///   granted when it is no longer wanted is given back.
/// - A session or failure of its own is the host's at once; the engine is told of it afterwards, until it has answered.
package struct FleetMachine: Sendable {
    /// What happens.
    package enum Event: Sendable, Equatable {
        /// A session later than `after`, the generation that this host has and that is of no use any more (0: none), is to be had;
        /// ends with `finish`. A renewal is of one that still serves: where another host is at it, it is left to that one.
        /// `token` is new.
        case want(after: UInt64, isRenewal: Bool, token: LeaseToken)
        /// Nobody waits for it any more. A login that runs goes on.
        case giveUp
        /// What the engine answered to the last `ask`; `latches` is the count of changes up to which this host knows the shared ones.
        case answered(EngineReply?, latches: UInt64)
        /// The latches that `readLatches` asked for are known now, or could not be read.
        case latchesRead(Bool)
        /// The engine's news of this session.
        case told(generation: UInt64)
        /// The engine does not answer any more.
        case away
        /// The engine answers.
        case connected
        /// The time of `due` has come.
        case timer
        /// The login has won a session; sealed, or `nil` where other hosts could not use it; and how long it lives.
        case won(session: [UInt8]?, life: Duration)
        /// The login has failed: what the others are told, and for how long they are to let it be (see `EngineRequest.fail`).
        case failed([UInt8], pause: Duration, longest: Duration, latches: [SharedLatch])
        /// The login was broken off: nobody is told, and the next may try at once.
        case cancelled
        /// What was told of failed logins holds no longer on this host: a latch was opened, or a credential has changed.
        case forget
    }

    /// What the driver does.
    package enum Action: Sendable, Equatable {
        /// Ask the engine; the answer comes by `answered`.
        case ask(EngineRequest)
        /// Read the shared latches, then say `latchesRead`.
        case readLatches
        /// Begin the login; it ends with `won`, `failed` or `cancelled`. `generation` is that of its lease, `nil` where it goes ahead
        /// alone because the engine is away.
        case begin(generation: UInt64?)
        /// What was wanted is over.
        case finish(Outcome)
        /// Nothing was wanted, and another host has a later session: take it.
        case adopt(generation: UInt64, [UInt8])
        /// Another host has ended the session of that generation for all.
        case drop(generation: UInt64)
    }

    /// How a `want` ends.
    package enum Outcome: Sendable, Equatable {
        /// With a session of another host. One that cannot be used here is wanted again, after its generation.
        case session(generation: UInt64, [UInt8])
        /// With another host's failure, and for how long nobody logs in.
        case failure([UInt8], for: Duration)
        /// With the session that this host's login has won. Of that generation, unless a later lease was granted meanwhile; `nil`:
        /// of none, as it was won alone.
        case won(generation: UInt64?)
        /// With the failure of this host's login, or its being broken off.
        case failed
        /// With nothing: given up, or another host renews the session.
        case left
    }

    let times: FleetTimes
    /// Whether the engine answers, as far as is known.
    package internal(set) var isEngineThere: Bool
    /// The latest generation that this host has taken from the fleet or given to it.
    package internal(set) var present: UInt64
    /// The latest generation that is known to be of no use.
    var refused: UInt64 = 0
    /// The session that this host has, sealed, and the last one that turned out to be of no use: it may come back under a later
    /// generation, where the engine has taken an offer and the answer was lost.
    var held: [UInt8]?
    var refusedSession: [UInt8]?
    var underWay: UnderWay?
    var attempt: Attempt?
    /// What the engine is still to be told of.
    var untold: [Untold] = []
    /// When the engine is to be asked for a session that nobody waits for.
    var look: Look?
    /// How another host's login failed, while that is to be waited out.
    var failure: (bytes: [UInt8], until: Int64)?
    /// Until when another host may be at it.
    var othersUntil: Int64 = 0
    /// The latest generation that news told of, and when `present` was taken.
    var toldOf: UInt64 = 0
    var takenAt = Int64.min
    var actions: [Action] = []

    /// A machine that wants nothing. `present` is the generation of a session that was taken over from an earlier process, or 0.
    package init(times: FleetTimes = FleetTimes(), isEngineThere: Bool, present: UInt64 = 0) {
        self.times = times
        self.isEngineThere = isEngineThere
        self.present = present
    }

    /// Whether something is wanted that is not there yet.
    package var isWanting: Bool { attempt != nil }
    /// Whether this host logs in.
    package var isLoggingIn: Bool { if case .winning = attempt?.step { true } else { false } }
    /// Whether the engine has not taken note of all that this host has to tell.
    package var hasUntold: Bool { !untold.isEmpty }

    /// What is to be done after `event`.
    package mutating func handle(_ event: Event, now: Int64, chance: Double) -> [Action] {
        let moment = FleetMoment(now: now, chance: min(max(chance, 0), 1))
        switch event {
        case .want(let after, let isRenewal, let token): want(after, isRenewal, token, moment)
        case .giveUp: giveUp(moment)
        case .answered(let reply, let latches): answered(reply, latches, moment)
        case .latchesRead(let isRead): latchesRead(isRead, moment)
        case .told(let generation): told(generation, moment)
        case .away: away(moment)
        case .connected: connected(moment)
        case .timer: break
        case .won(let session, let life): won(session, life, moment)
        case .failed(let bytes, let pause, let longest, let latches):
            end(.fail(bytes, pause: pause, longest: longest, latches: latches), moment)
        case .cancelled: end(.release, moment)
        case .forget:
            failure = nil
            othersUntil = 0
        }
        goOn(moment)
        defer { actions = [] }
        return actions
    }
}

/// What an event brings along.
struct FleetMoment {
    let now: Int64
    let chance: Double

    /// `duration` from now.
    func after(_ duration: Duration) -> Int64 { now &+ min(max(duration.milliseconds, 0), 1 << 50) }
    /// By chance, within `duration` from now.
    func within(_ duration: Duration) -> Int64 { now &+ Int64(chance * Double(min(duration.milliseconds, 1 << 50))) }
}

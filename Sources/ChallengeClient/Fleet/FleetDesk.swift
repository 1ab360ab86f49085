// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// The machines of all sessions that this host shares, with the engine, on one worker's loop.
final class FleetDesk {
    /// What is told to whoever wants a session.
    enum Turn: Sendable {
        /// Another host's login has failed.
        case failure([UInt8])
        /// Another host renews it.
        case left
        /// It is this host's turn: log in, and say how that ended.
        case login
        /// Another host has won it.
        case session([UInt8])
    }

    /// What the desk has others do.
    struct Callbacks {
        /// Take up a session that nobody waits for.
        var adopt: (SessionKey, FleetPlan.Place, [UInt8]) -> Void
        /// Drop a session: another host has ended it for all.
        var drop: (SessionKey) -> Void
        /// Offer the session that is held here, if one is: the engine may have lost it.
        var offer: (SessionKey, FleetPlan.Place) -> Void
        /// Somebody has opened the latches of these challenges.
        var opened: (Set<String>) -> Void
        /// Change what is counted.
        var count: (@Sendable (inout FleetFigures) -> Void) -> Void
    }

    /// One session.
    private final class Seat {
        let key: SessionKey
        let place: FleetPlan.Place
        let timer: LazyTimer
        /// Until what is held here is offered.
        let offerTimer: LazyTimer
        var machine: FleetMachine
        var turn: ((Turn) -> Void)?
        /// A session that was of no use here: it may be, once a credential has changed here as well.
        var kept: [UInt8]?

        init(_ key: SessionKey, _ place: FleetPlan.Place, _ machine: FleetMachine, _ loop: EventLoop) {
            self.key = key
            self.place = place
            self.machine = machine
            timer = LazyTimer(loop: loop)
            offerTimer = LazyTimer(loop: loop)
        }
    }

    /// Seats come from what upstreams name as scopes, so their number has to be bounded: beyond, a host wins its own.
    private static let mostSeats = 4096

    private let loop: EventLoop
    private let engine: any SessionEngine
    private let gate: SharedAttemptGate
    private let times: FleetTimes
    private let callbacks: Callbacks
    private var seats: [String: Seat] = [:]
    /// Makes a number in 0..<1.
    private let chance: @Sendable () -> Double

    init(
        loop: EventLoop, engine: any SessionEngine, gate: SharedAttemptGate, times: FleetTimes,
        chance: @escaping @Sendable () -> Double, callbacks: Callbacks
    ) {
        self.loop = loop
        self.chance = chance
        self.engine = engine
        self.gate = gate
        self.times = times
        self.callbacks = callbacks
    }

    /// Connects.
    func begin() {
        // Weakly, here and below: an answer may come after the end.
        engine.listener = { [weak self] in self?.hear($0) }
        engine.begin()
    }

    /// Asks nothing any more.
    func end() {
        for seat in seats.values {
            seat.timer.cancel()
            seat.offerTimer.cancel()
        }
        seats = [:]
        engine.end()
        engine.listener = nil
    }

    /// Follows these sessions, so that what others win is here before anybody asks.
    func follow(_ keys: [(SessionKey, FleetPlan.Place)]) {
        for (key, place) in keys { _ = seat(of: key, at: place) }
    }

    /// Somebody is to have the session of `key`, later than the one that was used; `turn` is called once.
    func want(_ key: SessionKey, _ place: FleetPlan.Place, isRenewal: Bool, _ turn: @escaping (Turn) -> Void) {
        guard let seat = seat(of: key, at: place), seat.turn == nil else { return turn(.login) }
        if let kept = seat.kept {
            seat.kept = nil
            return turn(.session(kept))
        }
        seat.turn = turn
        let token = LeaseToken(Self.randomText())
        handle(.want(after: seat.machine.present, isRenewal: isRenewal, token: token), seat)
    }

    /// A login that it was this host's turn for is over, or whatever else its machine is to know.
    func tell(_ place: FleetPlan.Place, _ event: FleetMachine.Event) {
        guard let seat = seats[place.name] else { return }
        guard seat.machine.isLoggingIn else { return }
        if case .failed(let bytes, let pause, let longest, _) = event {
            let event = FleetMachine.Event.failed(bytes, pause: pause, longest: longest, latches: untold)
            return handle(event, seat)
        }
        handle(event, seat)
    }

    /// Gives the engine a session that is held here, unless it has one that is as late.
    func offer(_ session: [UInt8], life: Duration, at place: FleetPlan.Place) {
        guard let seat = seats[place.name], !seat.machine.isWanting, !seat.machine.hasUntold else { return }
        let present = seat.machine.present
        engine.ask(.offer(after: max(present, 1) - 1, session: session, life: life), for: place.name) {
            [weak self] in
            switch $0 {
            case .done(let generation), .session(let generation, _):
                if generation > present { self?.handle(.told(generation: generation), seat) }
            case .failed, .granted, .nothing, .stale, .wait, nil: break
            }
        }
    }

    /// A session of another host is of no use here, for now.
    func keep(_ bytes: [UInt8], at place: FleetPlan.Place) { seats[place.name]?.kept = bytes }

    /// Ends these sessions for all hosts.
    func drop(_ places: [FleetPlan.Place]) {
        for place in places {
            guard let seat = seats[place.name] else { continue }
            seat.kept = nil
            handle(.forget, seat)
            engine.ask(.drop(generation: seat.machine.present), for: place.name) { _ in }
        }
    }

    /// What failed before is to be tried again.
    func forgetFailures() {
        for seat in seats.values { handle(.forget, seat) }
    }

    /// Opens the shared latches of a challenge, and ends the pauses after failures on all hosts.
    func open(_ challenge: String) {
        forgetFailures()
        // No session is of so early a generation: only failures are dropped.
        for seat in seats.values { engine.ask(.drop(generation: 0), for: seat.place.name) { _ in } }
        engine.open(challenge: challenge) { _ in }
    }

    /// Tells the engine of latches that were closed here, unless the end of a login under way does.
    func closeLatches() {
        let untold = untold
        guard !untold.isEmpty, engine.isThere else { return }
        engine.close(untold) { [gate] in if $0 { gate.change { $0.shared.told(untold) } } }
    }

    private var untold: [SharedLatch] { gate.read { $0.shared.untold } }

    private var latchCount: UInt64 { gate.read { $0.shared.count } }

    // MARK: The engine

    private func hear(_ news: EngineNews) {
        switch news {
        case .connected:
            callbacks.count { $0.isEngineThere = true }
            readLatches { _ in }
            for seat in seats.values {
                handle(.connected, seat)
                // By chance, for all hosts do.
                seat.offerTimer.arm(at: loop.now + LoopDelay(times.spread * chance()))
            }
        case .away(let reason):
            callbacks.count {
                $0.isEngineThere = false
                $0.reason = reason
            }
            for seat in seats.values { handle(.away, seat) }
        case .session(let name, let generation):
            if let seat = seats[name] { handle(.told(generation: generation), seat) }
        case .latches(let count):
            if count != latchCount { readLatches { _ in } }
        }
    }

    private func readLatches(_ done: @escaping (Bool) -> Void) {
        engine.latches { [weak self] answer in
            guard let self, let (count, latches) = answer else { return done(false) }
            let opened = gate.read(latches, count: count)
            if !opened.isEmpty { callbacks.opened(opened) }
            closeLatches()
            done(true)
        }
    }

    // MARK: The machines

    private func seat(of key: SessionKey, at place: FleetPlan.Place) -> Seat? {
        if let seat = seats[place.name] { return seat }
        guard seats.count < Self.mostSeats else { return nil }
        let machine = FleetMachine(times: times, isEngineThere: engine.isThere)
        let seat = Seat(key, place, machine, loop)
        seats[place.name] = seat
        seat.timer.onExpiry = { [weak self, weak seat] in
            if let seat { self?.handle(.timer, seat) }
        }
        seat.offerTimer.onExpiry = { [weak self, weak seat] in
            if let seat { self?.callbacks.offer(seat.key, seat.place) }
        }
        engine.follow(place.name)
        // Somebody may have won it before this host came.
        if engine.isThere { handle(.connected, seat) }
        return seat
    }

    private func handle(_ event: FleetMachine.Event, _ seat: Seat) {
        let actions = seat.machine.handle(event, now: now, chance: chance())
        for action in actions { perform(action, seat) }
        if let due = seat.machine.due {
            seat.timer.arm(at: loop.now + LoopDelay(.milliseconds(max(0, due - now))))
        } else {
            seat.timer.disarm()
        }
    }

    private func perform(_ action: FleetMachine.Action, _ seat: Seat) {
        switch action {
        case .ask(let request): ask(request, seat)
        case .readLatches: readLatches { [weak self] in self?.handle(.latchesRead($0), seat) }
        case .begin(let generation):
            callbacks.count { if generation == nil { $0.alone += 1 } else { $0.leases += 1 } }
            answer(.login, seat)
        case .finish(.session(_, let bytes)): answer(.session(bytes), seat)
        case .finish(.failure(let bytes, _)):
            callbacks.count { $0.failures += 1 }
            answer(.failure(bytes), seat)
        case .finish(.won(let generation)):
            if generation != nil { callbacks.count { $0.published += 1 } }
            release(seat)
        case .finish(.failed): release(seat)
        case .finish(.left): answer(.left, seat)
        case .adopt(_, let bytes): callbacks.adopt(seat.key, seat.place, bytes)
        case .drop: callbacks.drop(seat.key)
        }
    }

    private func ask(_ request: EngineRequest, _ seat: Seat) {
        engine.ask(request, for: seat.place.name) { [weak self] reply in
            guard let self else { return }
            callbacks.count {
                $0.requests += 1
                if reply == nil { $0.unanswered += 1 }
            }
            // Late or not, it has closed them.
            if case .fail(_, _, _, _, _, let closed) = request, reply != nil { gate.change { $0.shared.told(closed) } }
            handle(.answered(reply, latches: latchCount), seat)
        }
    }

    /// A login is over that has answered its own turn; whoever came during it, which the table lets nobody do, asks again.
    private func release(_ seat: Seat) {
        guard let turn = seat.turn else { return }
        seat.turn = nil
        let (key, place) = (seat.key, seat.place)
        let bound = LoopBound((desk: self, turn: turn), to: loop)
        loop.execute { bound.value.desk.want(key, place, isRenewal: false, bound.value.turn) }
    }

    private func answer(_ turn: Turn, _ seat: Seat) {
        let waiting = seat.turn
        seat.turn = nil
        waiting?(turn)
    }

    /// Milliseconds of a clock that never goes back, and goes on while the machine sleeps: leases end meanwhile.
    private var now: Int64 { Int64(loop.continuousNow.nanoseconds / 1_000_000) }

    private static func randomText() -> String {
        (0..<4).map { _ in
            let digits = String(UInt32.random(in: .min ... .max), radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }.joined()
    }
}

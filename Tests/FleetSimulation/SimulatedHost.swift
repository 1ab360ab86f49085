// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EngineModel
import HTTPTypes
import Secrets

/// One host: its session table, its machine, and what drives both as the daemon does.
final class SimulatedHost {
    let number: Int
    unowned let fleet: SimulatedFleet
    /// How far its clock is off.
    private let skew: Int64
    private(set) var table = SessionTable<Int>()
    private(set) var machine: FleetMachine
    /// Rises with each restart; what an earlier life has asked for is none of this one's.
    private(set) var life = 0
    private(set) var isAlive = true
    private(set) var isConnected = true
    private var cutOffUntil: Int64 = 0
    private var password = 1
    /// The sessions that the server has refused, in this life.
    private var refused: Set<Int> = []
    /// The rejected passwords that it knows of; kept over restarts.
    private(set) var latched: Set<Int> = []
    private(set) var latchCount: UInt64 = 0
    /// Callers that wait, and since when.
    private(set) var waiting: [Int: Int64] = [:]
    private var lastCaller = 0
    private var lastToken = 0
    private var lastAsked = 0
    /// The request that was not answered yet.
    private var asked: Int?
    private var timerAt: Int64?
    private var inbox: [FleetMachine.Event] = []
    private var isHandling = false
    /// How this host's own login has ended, and what it tells the others of it.
    var result: Result<Session, LoginFailure>?
    var sealed: [UInt8]?
    /// When the session was wanted that is not there yet.
    private(set) var wantedSince: Int64?

    init(_ number: Int, _ fleet: SimulatedFleet) {
        self.number = number
        self.fleet = fleet
        skew = fleet.pick(-fleet.weather.skew...fleet.weather.skew)
        machine = FleetMachine(isEngineThere: true)
    }

    /// By this host's clock.
    var wall: Int64 { 1_700_000_000_000 + fleet.now + skew }
    var isReachable: Bool { isAlive && fleet.now >= cutOffUntil }
    var knownPassword: Int { password }

    // MARK: Callers

    func beginRequest() {
        guard isAlive, waiting.count < 200 else { return }
        lastCaller += 1
        ask(lastCaller, rejected: nil, since: fleet.now)
    }

    private func ask(_ caller: Int, rejected: UInt64?, since: Int64, rounds: Int = 0) {
        guard rounds < 5 else { return }
        switch table.request(SimulatedFleet.key, rejected: rejected, waiter: caller, now: wall) {
        case .use(let held), .prove(let held): use(held, caller, since, rounds)
        case .wait: waiting[caller] = since
        case .go:
            waiting[caller] = since
            want(isRenewal: false)
        case .no, .overloaded: break
        }
    }

    private func use(_ held: HeldSession, _ caller: Int, _ since: Int64, _ rounds: Int) {
        guard let session = held.number else { return }
        let life = life
        fleet.after(20) { [unowned self] in
            guard isAlive, self.life == life else { return }
            if fleet.server.isValid(session, now: fleet.now) {
                fleet.report.served += 1
            } else {
                refused.insert(session)
                ask(caller, rejected: held.generation, since: since, rounds: rounds + 1)
            }
        }
    }

    func renewIfDue() {
        guard isAlive, let due = table.held(SimulatedFleet.key)?.renewAt, wall >= due,
            table.beginRenewal(SimulatedFleet.key, now: wall)
        else { return }
        want(isRenewal: true)
    }

    private func want(isRenewal: Bool, after generation: UInt64? = nil) {
        if wantedSince == nil { wantedSince = fleet.now }
        lastToken += 1
        let after = fleet.mutant == .forgetsRefusal ? 0 : generation ?? machine.present
        on(.want(after: after, isRenewal: isRenewal, token: LeaseToken("\(number)/\(life)/\(lastToken)")))
    }

    func tell(_ told: [(waiter: Int, outcome: SessionTable<Int>.Outcome)]) {
        for (caller, outcome) in told {
            guard let since = waiting.removeValue(forKey: caller) else {
                fleet.rules.fail("host \(number) tells \(caller), who does not wait")
                return
            }
            switch outcome {
            case .askAgain: ask(caller, rejected: nil, since: since)
            case .failed: fleet.report.failed += 1
            case .kept(let held, _), .prove(_, let held), .won(let held):
                fleet.report.waited.append(fleet.now - since)
                use(held, caller, since, 0)
            }
        }
    }

    // MARK: The machine

    func on(_ event: FleetMachine.Event) {
        guard isAlive else { return }
        inbox.append(event)
        guard !isHandling else { return }
        isHandling = true
        while !inbox.isEmpty {
            let event = inbox.removeFirst()
            for action in machine.handle(event, now: fleet.now, chance: fleet.chance()) { carryOut(action) }
        }
        isHandling = false
        armTimer()
    }

    private func armTimer() {
        guard machine.due != timerAt else { return }
        timerAt = machine.due
        guard let due = timerAt else { return }
        let life = life
        fleet.after(due - fleet.now) { [unowned self] in
            guard self.life == life, timerAt == due else { return }
            timerAt = nil
            on(.timer)
        }
    }

    private func carryOut(_ action: FleetMachine.Action) {
        switch action {
        case .ask(let request): ask(request)
        case .readLatches:
            if fleet.mutant == .ignoresLatches { return on(.latchesRead(true)) }
            readLatches { [unowned self] in on(.latchesRead($0)) }
        case .begin(let generation): logIn(generation)
        case .finish(.session(let generation, let sealed)):
            guard let session = opened(sealed) else { return want(isRenewal: false, after: generation) }
            check(sealed)
            finish(.success(session))
        case .finish(.failure(let bytes, let rest)):
            let code = bytes == Self.rejected ? LoginFailure.Code.rejected : .failed
            finish(.failure(failure(code, retryAt: wall + rest.milliseconds)))
        case .finish(.won(let generation)):
            if let generation, let sealed { fleet.rules.has(sealed, of: generation) }
            finish(result ?? .failure(failure(.failed)))
        case .finish(.failed): finish(result ?? .failure(failure(.failed)))
        case .finish(.left):
            wantedSince = nil
            tell(table.abandon(SimulatedFleet.key))
        case .adopt(_, let sealed):
            guard let session = opened(sealed) else { return }
            check(sealed)
            tell(table.finish(SimulatedFleet.key, with: .success(session), now: wall, chance: fleet.chance()))
        case .drop: _ = table.drop { $0 == SimulatedFleet.key }
        }
    }

    private func check(_ sealed: [UInt8]) {
        guard let session = opened(sealed), let number = session.number, refused.contains(number) else { return }
        fleet.rules.fail("host \(self.number) takes the session \(number), which it knows to be refused")
    }

    private func finish(_ result: Result<Session, LoginFailure>) {
        if let wantedSince { fleet.report.longestWant = max(fleet.report.longestWant, fleet.now - wantedSince) }
        wantedSince = nil
        tell(table.finish(SimulatedFleet.key, with: result, now: wall, chance: fleet.chance()))
    }

    private func ask(_ request: EngineRequest) {
        lastAsked += 1
        let number = lastAsked
        asked = number
        var request = request
        if fleet.mutant == .changesToken, case .acquire(let after, let token, let life) = request {
            request = .acquire(after: after, token: LeaseToken("\(token.text)/\(number)"), life: life)
        }
        if fleet.mutant == .beginsTwice, case .extend(let token, _, let life) = request {
            request = .acquire(after: 0, token: token, life: life)
        }
        guard isConnected else { return fleet.after(0) { [unowned self] in answered(number, nil) } }
        let life = life
        fleet.after(1_000) { [unowned self] in if self.life == life { answered(number, nil) } }
        let sent = request
        fleet.engine.send(from: self) { [mutant = fleet.mutant] engine, now in
            var request = sent
            if mutant == .ignoresFence, case .publish(_, _, let session, let life) = sent,
                let lease = engine.entries[Self.name]?.lease
            {
                request = .publish(token: lease.token, generation: lease.generation, session: session, life: life)
            }
            return engine.carryOut(request, for: Self.name, now: now)
        } _: { [unowned self] reply in
            if self.life == life { answered(number, reply) }
        }
    }

    private func answered(_ number: Int, _ reply: EngineReply?) {
        guard asked == number else { return }
        asked = nil
        if reply == .stale { fleet.report.stale += 1 }
        var reply = reply
        if fleet.mutant == .doesNotWait, case .wait = reply {
            reply = fleet.engine.model.entries[Self.name]?.lease.map {
                .granted(generation: $0.generation, latches: fleet.engine.model.latchCount)
            }
        }
        if fleet.mutant == .beginsTwice, machine.isLoggingIn, case .granted(let generation, _) = reply {
            logIn(generation)
            reply = .done(generation: generation)
        }
        on(.answered(reply, latches: latchCount))
    }

    // MARK: News, latches, connection

    func hear(_ news: EngineModel.News) {
        guard isConnected else { return }
        switch news {
        case .session(_, let generation): on(.told(generation: generation))
        case .latches(let count): if count > latchCount { readLatches { _ in } }
        }
    }

    private func readLatches(_ then: @escaping (Bool) -> Void) {
        guard isConnected else { return fleet.after(0) { then(false) } }
        let life = life
        var isOver = false
        fleet.after(1_000) { [unowned self] in
            guard self.life == life, !isOver else { return }
            isOver = true
            then(false)
        }
        fleet.engine.send(from: self) { engine, _ in
            (engine.latchCount, engine.latches.keys.compactMap { Int($0) })
        } _: { [unowned self] count, passwords in
            guard isAlive, self.life == life, !isOver else { return }
            isOver = true
            latched.formUnion(passwords)
            latchCount = max(latchCount, count)
            then(true)
        }
    }

    /// Tells the engine of what this host knows to be rejected, until it was heard.
    func shareLatches() {
        guard isAlive, isConnected, !latched.isEmpty else { return }
        let life = life
        var isHeard = false
        let latches = latched.map(Self.latch)
        fleet.engine.send(from: self) {
            $0.close(latches, now: $1)
        } _: {
            isHeard = true
        }
        fleet.after(1_000) { [unowned self] in if !isHeard, self.life == life { shareLatches() } }
    }

    func close(_ password: Int) { latched.insert(password) }

    func noticeConnection() {
        let isThere = fleet.engine.isUp && isReachable
        guard isAlive, isThere != isConnected else { return }
        isConnected = isThere
        if isThere {
            shareLatches()
            readLatches { _ in }
            on(.connected)
        } else {
            if let asked { answered(asked, nil) }
            on(.away)
        }
    }

    func loseConnection(for time: Int64) {
        guard !fleet.isCalm else { return }
        cutOffUntil = fleet.now + time
        noticeConnection()
        fleet.after(time) { [unowned self] in noticeConnection() }
    }

    // MARK: Faults

    func die() {
        guard isAlive, !fleet.isCalm else { return }
        fleet.rules.died(self)
        isAlive = false
        life += 1
        waiting = [:]
        wantedSince = nil
        fleet.after(fleet.pick(500...10_000)) { [unowned self] in comeBack() }
    }

    func comeBack() {
        if fleet.isCalm { cutOffUntil = 0 }
        if !isAlive {
            isAlive = true
            table = SessionTable()
            asked = nil
            timerAt = nil
            inbox = []
            result = nil
            refused = []
            latchCount = 0
            isConnected = false
            machine = FleetMachine(isEngineThere: false)
        }
        noticeConnection()
    }

    /// The store of credentials has another value.
    func learn(_ password: Int) {
        self.password = password
        table.forgetFailures(of: SimulatedFleet.key.challenge)
        on(.forget)
    }

    /// An operator's `sessions drop`.
    func dropForAll() {
        guard isAlive else { return }
        let generation = machine.present
        _ = table.drop { $0 == SimulatedFleet.key }
        fleet.engine.send(from: self) {
            $0.carryOut(.drop(generation: generation), for: Self.name, now: $1)
        } _: { _ in
        }
    }

    static let name = "bank"
    static let rejected: [UInt8] = [1]
    static let unknown: [UInt8] = [2]

    static func latch(_ password: Int) -> SharedLatch {
        SharedLatch(
            digest: "\(password)", challenge: SimulatedFleet.key.challenge, latch: Latch(reason: .rejected, closedAt: 0)
        )
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import ChallengeHandling
import HTTPTypes
import Secrets
import SessionStoreModel
import SharedSessions

/// One node: its session table, its machine, and their driver, as in the daemon.
final class SimulatedNode {
    let number: Int
    unowned let simulation: NodeSimulation
    /// Error of its clock.
    private let skew: Int64
    private(set) var table = SessionTable<Int>()
    private(set) var machine: LeaseMachine
    /// Number of restarts; answers to requests of an earlier process are ignored.
    private(set) var life = 0
    private(set) var isAlive = true
    private(set) var isConnected = true
    private var cutOffUntil: Int64 = 0
    private var password = 1
    /// The sessions that the server has refused since the last restart.
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
    private var inbox: [LeaseMachine.Event] = []
    private var isHandling = false
    /// Result of this node's own login, and the session sealed for the others.
    var result: Result<Session, LoginFailure>?
    var sealed: [UInt8]?
    /// Time since which a session is wanted that does not exist yet.
    private(set) var wantedSince: Int64?

    init(_ number: Int, _ simulation: NodeSimulation) {
        self.number = number
        self.simulation = simulation
        skew = simulation.pick(-simulation.weather.skew...simulation.weather.skew)
        machine = LeaseMachine(isStoreReachable: true)
    }

    /// By this node's clock.
    var wall: Int64 { 1_700_000_000_000 + simulation.now + skew }
    var isReachable: Bool { isAlive && simulation.now >= cutOffUntil }
    var knownPassword: Int { password }

    // MARK: Callers

    func beginRequest() {
        guard isAlive, waiting.count < 200 else { return }
        lastCaller += 1
        ask(lastCaller, rejected: nil, since: simulation.now)
    }

    private func ask(_ caller: Int, rejected: UInt64?, since: Int64, rounds: Int = 0) {
        guard rounds < 5 else { return }
        switch table.request(NodeSimulation.key, rejected: rejected, waiter: caller, now: wall) {
        case .use(let held), .verify(let held): use(held, caller, since, rounds)
        case .wait: waiting[caller] = since
        case .logIn:
            waiting[caller] = since
            want(isRenewal: false)
        case .refuse, .overloaded: break
        }
    }

    private func use(_ held: HeldSession, _ caller: Int, _ since: Int64, _ rounds: Int) {
        guard let session = held.number else { return }
        let life = life
        simulation.after(20) { [unowned self] in
            guard isAlive, self.life == life else { return }
            if simulation.server.isValid(session, now: simulation.now) {
                simulation.report.served += 1
            } else {
                refused.insert(session)
                ask(caller, rejected: held.generation, since: since, rounds: rounds + 1)
            }
        }
    }

    func renewIfDue() {
        guard isAlive, let due = table.held(NodeSimulation.key)?.renewAt, wall >= due,
            table.beginRenewal(NodeSimulation.key, now: wall)
        else { return }
        want(isRenewal: true)
    }

    private func want(isRenewal: Bool, after generation: UInt64? = nil) {
        if wantedSince == nil { wantedSince = simulation.now }
        lastToken += 1
        let after = simulation.mutant == .forgetsRefusal ? 0 : generation ?? machine.generation
        on(.sessionRequested(after: after, isRenewal: isRenewal, token: LeaseToken("\(number)/\(life)/\(lastToken)")))
    }

    func tell(_ told: [(waiter: Int, outcome: SessionTable<Int>.Outcome)]) {
        for (caller, outcome) in told {
            guard let since = waiting.removeValue(forKey: caller) else {
                simulation.rules.fail("node \(number) tells \(caller), who does not wait")
                return
            }
            switch outcome {
            case .askAgain: ask(caller, rejected: nil, since: since)
            case .failed: simulation.report.failed += 1
            case .kept(let held, _), .verify(_, let held), .established(let held):
                simulation.report.waited.append(simulation.now - since)
                use(held, caller, since, 0)
            }
        }
    }

    // MARK: The machine

    func on(_ event: LeaseMachine.Event) {
        guard isAlive else { return }
        inbox.append(event)
        guard !isHandling else { return }
        isHandling = true
        while !inbox.isEmpty {
            let event = inbox.removeFirst()
            for action in machine.handle(event, now: simulation.now, random: simulation.randomNumber()) {
                carryOut(action)
            }
        }
        isHandling = false
        armTimer()
    }

    private func armTimer() {
        guard machine.nextDeadline != timerAt else { return }
        timerAt = machine.nextDeadline
        guard let due = timerAt else { return }
        let life = life
        simulation.after(due - simulation.now) { [unowned self] in
            guard self.life == life, timerAt == due else { return }
            timerAt = nil
            on(.timerFired)
        }
    }

    private func carryOut(_ action: LeaseMachine.Action) {
        switch action {
        case .send(let request): ask(request)
        case .readLatches:
            if simulation.mutant == .ignoresLatches { return on(.latchesRead(true)) }
            readLatches { [unowned self] in on(.latchesRead($0)) }
        case .beginLogin(let generation): logIn(generation)
        case .finish(.session(let generation, let sealed)):
            guard let session = opened(sealed) else { return want(isRenewal: false, after: generation) }
            check(sealed)
            finish(.success(session))
        case .finish(.failure(let bytes, let rest)):
            let code = bytes == Self.rejected ? LoginFailure.Code.rejected : .failed
            finish(.failure(failure(code, retryAt: wall + rest.milliseconds)))
        case .finish(.established(let generation)):
            if let generation, let sealed { simulation.rules.has(sealed, of: generation) }
            finish(result ?? .failure(failure(.failed)))
        case .finish(.failed): finish(result ?? .failure(failure(.failed)))
        case .finish(.leftToOther):
            wantedSince = nil
            tell(table.abandon(NodeSimulation.key))
        case .adoptSession(_, let sealed):
            guard let session = opened(sealed) else { return }
            check(sealed)
            tell(
                table.finish(NodeSimulation.key, with: .success(session), now: wall, chance: simulation.randomNumber()))
        case .dropSession: _ = table.drop { $0 == NodeSimulation.key }
        }
    }

    private func check(_ sealed: [UInt8]) {
        guard let session = opened(sealed), let number = session.number, refused.contains(number) else { return }
        simulation.rules.fail("node \(self.number) takes the session \(number), which it knows to be refused")
    }

    private func finish(_ result: Result<Session, LoginFailure>) {
        if let wantedSince {
            simulation.report.longestWant = max(simulation.report.longestWant, simulation.now - wantedSince)
        }
        wantedSince = nil
        tell(table.finish(NodeSimulation.key, with: result, now: wall, chance: simulation.randomNumber()))
    }

    private func ask(_ request: StoreRequest) {
        lastAsked += 1
        let number = lastAsked
        asked = number
        var request = request
        if simulation.mutant == .changesToken, case .acquire(let after, let token, let life) = request {
            request = .acquire(after: after, token: LeaseToken("\(token.text)/\(number)"), lifetime: life)
        }
        if simulation.mutant == .beginsTwice, case .extend(let token, _, let life) = request {
            request = .acquire(after: 0, token: token, lifetime: life)
        }
        guard isConnected else { return simulation.after(0) { [unowned self] in answered(number, nil) } }
        let life = life
        simulation.after(1_000) { [unowned self] in if self.life == life { answered(number, nil) } }
        let sent = request
        simulation.sessionStore.send(from: self) { [mutant = simulation.mutant] sessionStore, now in
            var request = sent
            if mutant == .ignoresFence, case .publish(_, _, let session, let life) = sent,
                let lease = sessionStore.entries[Self.name]?.lease
            {
                request = .publish(token: lease.token, generation: lease.generation, session: session, lifetime: life)
            }
            return sessionStore.carryOut(request, for: Self.name, now: now)
        } _: { [unowned self] reply in
            if self.life == life { answered(number, reply) }
        }
    }

    private func answered(_ number: Int, _ reply: StoreReply?) {
        guard asked == number else { return }
        asked = nil
        if reply == .stale { simulation.report.stale += 1 }
        var reply = reply
        if simulation.mutant == .doesNotWait, case .wait = reply {
            reply = simulation.sessionStore.model.entries[Self.name]?.lease.map {
                .granted(generation: $0.generation, latches: simulation.sessionStore.model.latchCount)
            }
        }
        if simulation.mutant == .beginsTwice, machine.isLoggingIn, case .granted(let generation, _) = reply {
            logIn(generation)
            reply = .done(generation: generation)
        }
        on(.replyReceived(reply, latches: latchCount))
    }

    // MARK: News, latches, connection

    func receive(_ event: StoreEvent) {
        guard isConnected else { return }
        switch event {
        case .sessionChanged(_, let generation): on(.sessionChanged(generation: generation))
        case .attemptsChanged(let count): if count > latchCount { readLatches { _ in } }
        case .connected, .disconnected: break
        }
    }

    private func readLatches(_ then: @escaping (Bool) -> Void) {
        guard isConnected else { return simulation.after(0) { then(false) } }
        let life = life
        var isOver = false
        simulation.after(1_000) { [unowned self] in
            guard self.life == life, !isOver else { return }
            isOver = true
            then(false)
        }
        simulation.sessionStore.send(from: self) { sessionStore, _ in
            (sessionStore.latchCount, sessionStore.latches.keys.compactMap { Int($0) })
        } _: { [unowned self] count, passwords in
            guard isAlive, self.life == life, !isOver else { return }
            isOver = true
            latched.formUnion(passwords)
            latchCount = max(latchCount, count)
            then(true)
        }
    }

    /// Reports rejections that this node knows to the session store, until the report has arrived.
    func shareLatches() {
        guard isAlive, isConnected, !latched.isEmpty else { return }
        let life = life
        var isHeard = false
        let latches = latched.map(Self.latch)
        simulation.sessionStore.send(from: self) {
            $0.close(latches, now: $1)
        } _: {
            isHeard = true
        }
        simulation.after(1_000) { [unowned self] in if !isHeard, self.life == life { shareLatches() } }
    }

    func close(_ password: Int) { latched.insert(password) }

    func noticeConnection() {
        let isThere = simulation.sessionStore.isUp && isReachable
        guard isAlive, isThere != isConnected else { return }
        isConnected = isThere
        if isThere {
            shareLatches()
            readLatches { _ in }
            on(.storeConnected)
        } else {
            if let asked { answered(asked, nil) }
            on(.storeDisconnected)
        }
    }

    func loseConnection(for time: Int64) {
        guard !simulation.isCalm else { return }
        cutOffUntil = simulation.now + time
        noticeConnection()
        simulation.after(time) { [unowned self] in noticeConnection() }
    }

    // MARK: Faults

    func die() {
        guard isAlive, !simulation.isCalm else { return }
        simulation.rules.died(self)
        isAlive = false
        life += 1
        waiting = [:]
        wantedSince = nil
        simulation.after(simulation.pick(500...10_000)) { [unowned self] in comeBack() }
    }

    func comeBack() {
        if simulation.isCalm { cutOffUntil = 0 }
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
            machine = LeaseMachine(isStoreReachable: false)
        }
        noticeConnection()
    }

    /// The store of credentials has another value.
    func learn(_ password: Int) {
        self.password = password
        table.forgetFailures(of: NodeSimulation.key.challenge)
        on(.failuresForgotten)
    }

    /// An operator's `sessions drop`.
    func dropForAll() {
        guard isAlive else { return }
        let generation = machine.generation
        _ = table.drop { $0 == NodeSimulation.key }
        simulation.sessionStore.send(from: self) {
            $0.carryOut(.drop(generation: generation), for: Self.name, now: $1)
        } _: { _ in
        }
    }

    static let name = "bank"
    static let rejected: [UInt8] = [1]
    static let unknown: [UInt8] = [2]

    static func latch(_ password: Int) -> SharedLatch {
        SharedLatch(
            digest: "\(password)", challenge: NodeSimulation.key.challenge, latch: Latch(reason: .rejected, closedAt: 0)
        )
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport

/// One schedule: callers, logins, a server, a slow disk, an operator and restarts take steps in a random order, and after each step the
/// rules hold.
///
/// Drives an `AttemptGate` one step at a time, as the client does (`LoginRunner`, `Exchange+Sessions`).
struct GateRig {
    private static let limits = SessionLimits(waiters: 12, keys: 8)
    var gate = AttemptGate<Int>(limits: limits)
    var disk = ModelDisk()
    /// Steps that continue when their change is on disk.
    var writes: [ModelWrite] = []
    var server = ModelServer()
    var now: Int64 = 1_000_000
    var exchanges: [Int: ModelExchange] = [:]
    var logins: [ModelLogin] = []
    /// Confirmations in progress.
    var confirmations: [(key: SessionKey, held: HeldSession, password: Int)] = []
    var broken: String?
    private(set) var counts = Counts()
    private var lastExchange = 0
    private var random: SplitMix

    init(seed: UInt64) {
        random = SplitMix(state: seed)
        for name in ["ann", "bob", "carl", "dora"] { server.accounts[name] = .init() }
    }

    // MARK: Steps

    mutating func step() {
        if Int.random(in: 0..<3, using: &random) == 0 { write() }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<28: begin()
        case 28..<55: answerOne()
        case 55..<75: if confirmations.isEmpty || Bool.random(using: &random) { endLogin() } else { endConfirmation() }
        case 75..<80: giveUp()
        case 80..<86: now += Int64.random(in: 0..<40_000, using: &random)
        case 86..<88: server.restart()
        case 88..<90: server.isDown.toggle()
        case 90..<92: changePassword()
        case 92..<94: learnPassword()
        case 94: unlatch()
        case 95: _ = gate.sessions.drop { [name = pickKey().credential] in $0.credential == name }
        case 96: restart()
        default: tend()
        }
        checkRules()
    }

    /// Completes everything that is in progress.
    mutating func settle() {
        server.isDown = false
        for _ in 0..<1_000
        where broken == nil && !(exchanges.isEmpty && logins.isEmpty && confirmations.isEmpty && writes.isEmpty) {
            now += 10
            write()
            if !confirmations.isEmpty { endConfirmation() } else if logins.isEmpty { answerOne() } else { endLogin() }
            checkRules()
        }
        if broken == nil, !exchanges.isEmpty { broken = "exchanges without an end: \(exchanges)" }
    }

    private mutating func begin() {
        guard exchanges.count < 20 else { return }
        lastExchange += 1
        let resource = ModelResource.all.randomElement(using: &random) ?? 1
        ask(lastExchange, pickKey(), resource, rejected: nil, rounds: 0)
    }

    private mutating func ask(_ exchange: Int, _ key: SessionKey, _ resource: Int, rejected: UInt64?, rounds: Int) {
        let before = gate.sessions.held(key)
        exchanges[exchange] = nil
        let refused = rejected.map { RefusedUse(key: place(resource, key), generation: $0) }
        switch gate.requestSession(key, rejected: rejected, after: refused, waiter: exchange, now: now) {
        case .use(let held): send(exchange, key, held, resource, isUnverified: false, rounds: rounds)
        case .verify(let held): send(exchange, key, held, resource, isUnverified: true, rounds: rounds)
        case .wait:
            exchanges[exchange] = .waiting(key, resource: resource)
            counts.shared += 1
        case .logIn:
            if let before, before.generation != rejected, !before.isExpired(at: now) {
                broken = "a login while a session was there"
            }
            exchanges[exchange] = .waiting(key, resource: resource)
            startLogin(key)
        case .refuse, .overloaded: break
        }
    }

    private mutating func startLogin(_ key: SessionKey) {
        if let other = logins.map(\.key).first(where: key.isSibling) ?? writes.map(\.key).first(where: key.isSibling) {
            broken = "two logins at once: \(other)"
        }
        if confirmations.contains(where: { $0.key.isSibling(of: key) }) {
            broken = "a login beside a confirmation: \(key)"
        }
        let password = server.stored(key.credential)
        let isLatched = isLatched(password, key)
        counts.logins += 1
        if isLatched { counts.latched += 1 }
        let isHanging = Int.random(in: 0..<12, using: &random) == 0
        logins.append(ModelLogin(key: key, password: isLatched ? nil : password, isHanging: isHanging))
    }

    private mutating func endLogin() {
        guard let index = logins.indices.randomElement(using: &random) else { return }
        let login = logins.remove(at: index)
        if login.isHanging {
            // Its deadline passes; its result no longer counts, and it sends nothing more.
            counts.givenUp += 1
            let late = failure(.timedOut, login.key)
            return tell(
                gate.sessions.finish(login.key, with: .failure(late), now: now, chance: chance()), of: login.key)
        }
        let key = login.key
        guard let password = login.password else { return finish(key, .failure(failure(.latched, key))) }
        if ModelKeys.isUnverified(key) {
            return finish(key, .success(ModelKeys.session(password, key)), sending: digests(password))
        }
        if let refusal = refusal(of: password, key) { return finish(key, .failure(refusal)) }
        guard ModelKeys.hasCodes(key) else { return send(password, key) }
        let step = now / 30_000
        let (usedUntil, change) = gate.use(
            code: key.credential, stepEnding: (step + 1) * 30_000, isUsed: true, now: now)
        if usedUntil != nil { return finish(key, .failure(failure(.failed, key))) }
        // The used step has to be on disk first: a restart must not use the code again.
        writes.append(ModelWrite(key: key, ticket: keep(change), next: .send(password, code: step)))
    }

    /// Returns the reason not to send a password, or `nil`.
    private mutating func refusal(of password: Int, _ key: SessionKey) -> LoginFailure? {
        if server.isDown { return failure(.failed, key) }
        let remaining = Int64(server.accounts[key.credential]?.remaining ?? 0)
        let refusal = gate.refusal(
            ModelKeys.latch(key), digests(password), remaining: .count(remaining), keeping: 1, now: now)
        guard let refusal else { return nil }
        if refusal.failure.code == .attemptsKept { counts.spared += 1 }
        return refusal.failure
    }

    /// Sends a password to the server. Waiters get the result once its change is on disk.
    private mutating func send(_ password: Int, _ key: SessionKey) {
        guard server.takes(password, of: key.credential) else {
            let ticket = reject(password, key)
            return writes.append(
                ModelWrite(
                    key: key, ticket: ticket, refused: password, next: .finish(.failure(failure(.rejected, key)))))
        }
        let ends = Bool.random(using: &random) ? now + Int64.random(in: 1_000..<200_000, using: &random) : nil
        let session = Session(fields: [field(server.token(for: key.credential))], expiresAt: ends)
        writes.append(ModelWrite(key: key, ticket: mark(password, key), next: .finish(.success(session))))
    }

    private mutating func finish(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, sending value: AttemptDigests? = nil
    ) {
        tell(gate.finish(key, with: result, sending: value, now: now, chance: chance()), of: key)
    }

    private mutating func reject(_ password: Int, _ key: SessionKey) -> AttemptQueue.Ticket? {
        counts.rejections += 1
        return keep(
            gate.record(.rejected(.init(reason: .rejected, closedAt: now)), of: ModelKeys.latch(key), digests(password))
        )
    }

    private mutating func mark(_ password: Int, _ key: SessionKey) -> AttemptQueue.Ticket? {
        keep(gate.record(.accepted(Acceptance(path: nil, at: now)), of: ModelKeys.latch(key), digests(password)))
    }

    private mutating func keep(_ new: AttemptChange?) -> AttemptQueue.Ticket? { new.map { disk.queue.enqueue($0) } }

    /// Ends a write or begins one, and continues what waited for the write.
    private mutating func write() {
        let latches = gate.record.latches
        let written = disk.turn(&gate)
        if written > 1 { counts.together += 1 }
        if gate.record.latches != latches { broken = "a write has closed or opened a latch" }
        let ready = writes.filter { disk.has($0.ticket) }
        writes.removeAll { disk.has($0.ticket) }
        for write in ready { resume(after: write) }
    }

    private mutating func resume(after write: ModelWrite) {
        let key = write.key
        switch write.next {
        case .send(let password, let step):
            if let refusal = refusal(of: password, key) { return finish(key, .failure(refusal)) }
            counts.codes += 1
            server.took(code: step, of: key.credential)
            send(password, key)
        case .finish(let result): finish(key, result)
        case .end(let generation, let failure):
            tell(gate.sessions.reject(key, generation: generation, failure, now: now), of: key)
        }
    }

    private mutating func isLatched(_ password: Int, _ key: SessionKey) -> Bool {
        gate.refusal(ModelKeys.latch(key), digests(password), now: now) != nil
    }

    private mutating func send(
        _ exchange: Int, _ key: SessionKey, _ held: HeldSession, _ resource: Int, isUnverified: Bool, rounds: Int
    ) {
        if !held.text.hasPrefix("\(key.credential)/") { broken = "\(key) got the session \(held.text)" }
        if isUnverified { counts.unverifiedSessions += 1 }
        if let password = held.password, isLatched(password, key) {
            broken = "a rejected credential is sent again"
        }
        exchanges[exchange] = .sent(key, held, resource: resource, isUnverified: isUnverified, rounds: rounds)
    }

    /// Has the server answer one of the requests in progress.
    private mutating func answerOne() {
        let sent = exchanges.keys.sorted().filter { if case .sent = exchanges[$0] { true } else { false } }
        guard let exchange = sent.randomElement(using: &random),
            case .sent(let key, let held, let resource, let isUnverified, let rounds) = exchanges[exchange]
        else { return }
        exchanges[exchange] = nil
        counts.answers += 1
        if server.isDown {
            if isUnverified { recordVerification(by: exchange, key, held, .unanswered(.lost)) }
        } else if let password = held.password {
            let isForbidden = resource == ModelResource.forbidden
            if isForbidden { counts.resources += 1 }
            if server.takes(password, of: key.credential), !isForbidden {
                gate.refusals.removeRefusals(at: place(resource, key))
                if isUnverified {
                    // Nothing waits for this write.
                    _ = mark(password, key)
                    recordVerification(by: exchange, key, held, .accepted)
                }
            } else if gate.passesChallenge(at: place(resource, key), generation: held.generation, now: now) {
                counts.remembered += 1
                if isUnverified { recordVerification(by: exchange, key, held, .undecided) }
            } else {
                refused(exchange, key, held, resource, password, rounds)
            }
        } else if !server.isValid(held.text), rounds < 8 {
            ask(exchange, key, resource, rejected: held.generation, rounds: rounds + 1)
        }
    }

    private func place(_ resource: Int, _ key: SessionKey) -> ResourceKey {
        ResourceKey(resource: "GET /\(resource)", session: key)
    }

    private mutating func refused(
        _ exchange: Int, _ key: SessionKey, _ held: HeldSession, _ resource: Int, _ password: Int, _ rounds: Int
    ) {
        switch gate.sessions.requestConfirmation(of: key, generation: held.generation, waiter: exchange, now: now) {
        case .keep, .overloaded: recordVerification(by: exchange, key, held, .undecided)
        case .over:
            recordVerification(by: exchange, key, held, .undecided)
            if rounds < 8 { ask(exchange, key, resource, rejected: held.generation, rounds: rounds + 1) }
        case .wait: exchanges[exchange] = .waiting(key, resource: resource)
        case .confirm(let session):
            exchanges[exchange] = .waiting(key, resource: resource)
            counts.confirmations += 1
            confirmations.append((key, session, password))
        }
    }

    /// Ends a confirmation by a request to the address that last accepted the password; without one the password is rejected.
    private mutating func endConfirmation() {
        guard let index = confirmations.indices.randomElement(using: &random) else { return }
        let (key, held, password) = confirmations.remove(at: index)
        let isMarked = gate.acceptance(ModelKeys.latch(key), digests(password)) != nil
        if isMarked, server.isDown {
            return tell(gate.sessions.confirm(key, generation: held.generation, .unknown, now: now), of: key)
        }
        if isMarked, server.takes(password, of: key.credential) {
            return tell(gate.sessions.confirm(key, generation: held.generation, .stillGood, now: now), of: key)
        }
        if isMarked, server.accounts[key.credential]?.password == password {
            broken = "\(key.credential)'s password \(password), which was accepted, is latched by one resource"
        }
        let ticket = reject(password, key)
        writes.append(
            ModelWrite(
                key: key, ticket: ticket, refused: password,
                next: .end(generation: held.generation, failure(.rejected, key))))
    }

    private mutating func recordVerification(
        by exchange: Int, _ key: SessionKey, _ held: HeldSession, _ result: SessionTable<Int>.VerificationResult
    ) {
        tell(
            gate.sessions.recordVerification(
                of: key, generation: held.generation, result, by: exchange, now: now, chance: chance()), of: key)
    }

    private mutating func tell(
        _ told: [(waiter: Int, outcome: SessionTable<Int>.Outcome)], of key: SessionKey
    ) {
        for (waiter, outcome) in told {
            guard case .waiting(let wanted, let resource) = exchanges[waiter] else {
                broken = "\(waiter) is told \(outcome), but does not wait"
                return
            }
            exchanges[waiter] = nil
            switch outcome {
            case .askAgain: ask(waiter, wanted, resource, rejected: nil, rounds: 0)
            case .failed: break
            case .verify(_, let held): send(waiter, wanted, held, resource, isUnverified: true, rounds: 0)
            case .kept(let held, _?) where resource == ModelResource.forbidden:
                gate.refusals.recordRefusal(
                    RefusedUse(key: place(resource, wanted), generation: held.generation), now: now)
            case .kept(let held, _), .established(let held):
                send(waiter, wanted, held, resource, isUnverified: false, rounds: 0)
            }
        }
    }

    /// Removes a caller, in any state of its exchange.
    private mutating func giveUp() {
        guard let exchange = exchanges.keys.sorted().randomElement(using: &random) else { return }
        switch exchanges.removeValue(forKey: exchange) {
        case .waiting(let key, _): gate.sessions.removeWaiter(exchange, of: key)
        case .sent(let key, let held, _, isUnverified: true, _):
            recordVerification(
                by: exchange, key, held, Bool.random(using: &random) ? .undecided : .unanswered(.abandoned))
        case .sent, nil: break
        }
    }

    private mutating func changePassword() {
        let name = pickKey().credential
        server.accounts[name]?.password = Int.random(in: 0..<200, using: &random)
    }

    /// Puts the right password into the store, or another wrong one.
    private mutating func learnPassword() {
        let name = pickKey().credential
        let other = Int.random(in: 0..<200, using: &random)
        let isRight = Int.random(in: 0..<4, using: &random) > 0
        let right = server.accounts[name]?.password ?? 0
        server.accounts[name]?.stored = isRight ? right : other
    }

    private mutating func unlatch() {
        let key = pickKey()
        _ = keep(gate.unlatch(key.challenge, now: now).change)
        for one in ModelKeys.all where one.challenge == key.challenge {
            server.accounts[one.credential]?.refusals = [:]
            server.accounts[one.credential]?.remaining = 2
        }
    }

    /// Restarts the process, which then knows only what is on disk.
    private mutating func restart() {
        counts.restarts += 1
        // A value whose refusal was still being confirmed may be sent once more: only its address was on disk.
        // So may a value whose refusal was not written yet.
        let untold = writes.compactMap { write in write.refused.map { (write.key, $0) } }
        counts.lost += untold.count
        for (key, password) in confirmations.map({ ($0.key, $0.password) }) + untold {
            server.accounts[key.credential]?.refusals[password, default: 1] -= 1
        }
        disk.crash(isWritten: Bool.random(using: &random))
        writes = []
        gate = AttemptGate(limits: Self.limits, record: disk.record)
        exchanges = [:]
        logins = []
        confirmations = []
    }

    /// Begins a login on the daemon's own initiative: a renewal, a recovery, or a proactive login.
    private mutating func tend() {
        let key = pickKey()
        let isDue = gate.sessions.held(key)?.renewAt.map { now >= $0 } ?? false
        let begins =
            switch Int.random(in: 0..<3, using: &random) {
            case 0: isDue && gate.sessions.beginRenewal(key, now: now)
            case 1: gate.sessions.beginRecovery(key, now: now)
            default: gate.sessions.beginProactiveLogin(key, now: now)
            }
        guard begins else { return }
        counts.renewals += 1
        startLogin(key)
    }

    // MARK: Helpers

    private mutating func pickKey() -> SessionKey { ModelKeys.all.randomElement(using: &random) ?? ModelKeys.all[0] }

    private mutating func chance() -> Double { Double.random(in: 0..<1, using: &random) }

    private func digests(_ password: Int) -> AttemptDigests { AttemptDigests(own: [UInt8(password)]) }

    private func field(_ text: String) -> InjectedField { InjectedField(name: .authorization, value: Secret(text)) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport

/// One schedule: callers, logins, a server, an operator and restarts take steps in a random order, and after each step the rules hold.
///
/// It drives an `AttemptGate` as the client does (`LoginRunner`, `Exchange+Sessions`), one step of a conversation at a time,
/// so that anything can happen between two.
struct GateWorld {
    private static let limits = SessionLimits(waiters: 12, keys: 8)
    var gate = AttemptGate<Int>(limits: limits)
    /// What is on disk.
    var kept = AttemptRecord()
    var server = ModelServer()
    var now: Int64 = 1_000_000
    var exchanges: [Int: ModelExchange] = [:]
    var logins: [ModelLogin] = []
    /// The confirmations under way.
    var confirmations: [(key: SessionKey, held: HeldSession, password: Int)] = []
    var broken: String?
    private(set) var counts = Counts()
    private var lastExchange = 0
    private var random: SplitMix

    /// What has happened, so that a test can tell that its schedules were no idle ones.
    struct Counts {
        var answers = 0, logins = 0, trials = 0, rejections = 0, shared = 0, renewals = 0, latched = 0, givenUp = 0
        var confirmations = 0, resources = 0, remembered = 0, spared = 0, codes = 0, restarts = 0
    }

    init(seed: UInt64) {
        random = SplitMix(state: seed)
        for name in ["ann", "bob", "carl", "dora"] { server.accounts[name] = .init() }
    }

    // MARK: Steps

    mutating func step() {
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

    /// Lets everything that is under way come to its end.
    mutating func settle() {
        server.isDown = false
        for _ in 0..<1_000 where broken == nil && !(exchanges.isEmpty && logins.isEmpty && confirmations.isEmpty) {
            now += 10
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
        let refused = rejected.map { RefusedUse(place: place(resource, key), generation: $0) }
        switch gate.ask(for: key, rejected: rejected, after: refused, waiter: exchange, now: now) {
        case .use(let held): send(exchange, key, held, resource, isTrial: false, rounds: rounds)
        case .prove(let held): send(exchange, key, held, resource, isTrial: true, rounds: rounds)
        case .wait:
            exchanges[exchange] = .waiting(key, resource: resource)
            counts.shared += 1
        case .go:
            if let before, before.generation != rejected, !before.isExpired(at: now) {
                broken = "a login while a session was there"
            }
            exchanges[exchange] = .waiting(key, resource: resource)
            startLogin(key)
        case .no, .overloaded: break
        }
    }

    private mutating func startLogin(_ key: SessionKey) {
        if let other = logins.first(where: { $0.key.isSibling(of: key) }) {
            broken = "two logins at once: \(other.key)"
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
            // Its deadline passes; what it still does concerns nobody, and it sends nothing more.
            counts.givenUp += 1
            let late = failure(.timedOut, login.key)
            return tell(
                gate.sessions.finish(login.key, with: .failure(late), now: now, chance: chance()), of: login.key)
        }
        let result = result(of: login)
        tell(gate.sessions.finish(login.key, with: result, now: now, chance: chance()), of: login.key)
    }

    private mutating func result(of login: ModelLogin) -> Result<Session, LoginFailure> {
        let key = login.key
        guard let password = login.password else { return .failure(failure(.latched, key)) }
        if ModelKeys.isUnproven(key) {
            let credential = Credential(name: key.credential, fields: ["password": Secret("\(password)")])
            let use = CredentialUse(key: ModelKeys.latch(key), credential: credential)
            return .success(Session(unproven: use, fields: [field("\(key.credential)/=\(password)")]))
        }
        if server.isDown { return .failure(failure(.failed, key)) }
        let remaining = Int64(server.accounts[key.credential]?.remaining ?? 0)
        let refusal = gate.refusal(
            ModelKeys.latch(key), digests(password), remaining: .count(remaining), keeping: 1, now: now)
        if let refusal {
            if refusal.failure.code == .attemptsKept { counts.spared += 1 }
            return .failure(refusal.failure)
        }
        if ModelKeys.hasCodes(key) {
            let step = now / 30_000
            let (usedUntil, change) = gate.use(
                code: key.credential, stepEnding: (step + 1) * 30_000, isUsed: true, now: now)
            keep(change)
            if usedUntil != nil { return .failure(failure(.failed, key)) }
            counts.codes += 1
            server.took(code: step, of: key.credential)
        }
        guard server.takes(password, of: key.credential) else { return .failure(reject(password, key)) }
        mark(password, key)
        let ends = Bool.random(using: &random) ? now + Int64.random(in: 1_000..<200_000, using: &random) : nil
        return .success(Session(fields: [field(server.token(for: key.credential))], expiresAt: ends))
    }

    private mutating func reject(_ password: Int, _ key: SessionKey) -> LoginFailure {
        counts.rejections += 1
        keep(gate.note(.rejected(Latch(reason: .rejected, closedAt: now)), ModelKeys.latch(key), digests(password)))
        return failure(.rejected, key)
    }

    private mutating func mark(_ password: Int, _ key: SessionKey) {
        keep(gate.note(.accepted(Acceptance(path: nil, at: now)), ModelKeys.latch(key), digests(password)))
    }

    /// What the gate wants kept is on disk before anybody is told.
    private mutating func keep(_ change: AttemptChange?) {
        if let change { kept.apply(change) }
    }

    private mutating func isLatched(_ password: Int, _ key: SessionKey) -> Bool {
        gate.refusal(ModelKeys.latch(key), digests(password), now: now) != nil
    }

    private mutating func send(
        _ exchange: Int, _ key: SessionKey, _ held: HeldSession, _ resource: Int, isTrial: Bool, rounds: Int
    ) {
        if !held.text.hasPrefix("\(key.credential)/") { broken = "\(key) got the session \(held.text)" }
        if isTrial { counts.trials += 1 }
        if let password = held.password, isLatched(password, key) {
            broken = "a rejected credential is sent again"
        }
        exchanges[exchange] = .sent(key, held, resource: resource, isTrial: isTrial, rounds: rounds)
    }

    /// The server answers one of the requests that are under way.
    private mutating func answerOne() {
        let sent = exchanges.keys.sorted().filter { if case .sent = exchanges[$0] { true } else { false } }
        guard let exchange = sent.randomElement(using: &random),
            case .sent(let key, let held, let resource, let isTrial, let rounds) = exchanges[exchange]
        else { return }
        exchanges[exchange] = nil
        counts.answers += 1
        if server.isDown {
            if isTrial { judge(exchange, key, held, .undecided) }
        } else if let password = held.password {
            let isForbidden = resource == ModelResource.forbidden
            if isForbidden { counts.resources += 1 }
            if server.takes(password, of: key.credential), !isForbidden {
                gate.refusals.forget(place(resource, key))
                if isTrial {
                    mark(password, key)
                    judge(exchange, key, held, .accepted)
                }
            } else if gate.passes(place(resource, key), generation: held.generation, now: now) {
                counts.remembered += 1
                if isTrial { judge(exchange, key, held, .undecided) }
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
        switch gate.sessions.doubt(key, generation: held.generation, waiter: exchange, now: now) {
        case .keep, .overloaded: judge(exchange, key, held, .undecided)
        case .over:
            judge(exchange, key, held, .undecided)
            if rounds < 8 { ask(exchange, key, resource, rejected: held.generation, rounds: rounds + 1) }
        case .wait: exchanges[exchange] = .waiting(key, resource: resource)
        case .confirm(let session):
            exchanges[exchange] = .waiting(key, resource: resource)
            counts.confirmations += 1
            confirmations.append((key, session, password))
        }
    }

    /// What a client does that asks where the password was accepted last; one that was never accepted anywhere is rejected at once.
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
        let failure = reject(password, key)
        tell(gate.sessions.reject(key, generation: held.generation, failure, now: now), of: key)
    }

    private mutating func judge(
        _ exchange: Int, _ key: SessionKey, _ held: HeldSession, _ proof: SessionTable<Int>.Proof
    ) {
        tell(gate.sessions.judge(key, generation: held.generation, proof, by: exchange), of: key)
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
            case .prove(_, let held): send(waiter, wanted, held, resource, isTrial: true, rounds: 0)
            case .kept(let held, isConfirmed: true) where resource == ModelResource.forbidden:
                gate.refusals.noteRefusal(
                    RefusedUse(place: place(resource, wanted), generation: held.generation), now: now)
            case .kept(let held, _), .won(let held): send(waiter, wanted, held, resource, isTrial: false, rounds: 0)
            }
        }
    }

    /// A caller goes away, whatever its exchange does.
    private mutating func giveUp() {
        guard let exchange = exchanges.keys.sorted().randomElement(using: &random) else { return }
        switch exchanges.removeValue(forKey: exchange) {
        case .waiting(let key, _): gate.sessions.leave(key, waiter: exchange)
        case .sent(let key, let held, _, isTrial: true, _): judge(exchange, key, held, .undecided)
        case .sent, nil: break
        }
    }

    private mutating func changePassword() {
        let name = pickKey().credential
        server.accounts[name]?.password = Int.random(in: 0..<200, using: &random)
    }

    /// The store gets the right password, or another wrong one.
    private mutating func learnPassword() {
        let name = pickKey().credential
        let other = Int.random(in: 0..<200, using: &random)
        let isRight = Int.random(in: 0..<4, using: &random) > 0
        let right = server.accounts[name]?.password ?? 0
        server.accounts[name]?.stored = isRight ? right : other
    }

    private mutating func unlatch() {
        let key = pickKey()
        keep(gate.unlatch(key.challenge).change)
        for one in ModelKeys.all where one.challenge == key.challenge {
            server.accounts[one.credential]?.refusals = [:]
            server.accounts[one.credential]?.remaining = 2
        }
    }

    /// The process dies and comes back: what is on disk is all that it knows.
    private mutating func restart() {
        counts.restarts += 1
        // A value whose refusal was not yet judged may be sent once more: no more than its address was known of it.
        for (key, _, password) in confirmations { server.accounts[key.credential]?.refusals[password, default: 1] -= 1 }
        gate = AttemptGate(limits: Self.limits, record: kept)
        exchanges = [:]
        logins = []
        confirmations = []
    }

    /// What the daemon does by itself: renews ahead of an end, tries again what has failed, keeps what is to be kept.
    private mutating func tend() {
        let key = pickKey()
        let isDue = gate.sessions.held(key)?.renewAt.map { now >= $0 } ?? false
        let begins =
            switch Int.random(in: 0..<3, using: &random) {
            case 0: isDue && gate.sessions.beginRenewal(key, now: now)
            case 1: gate.sessions.beginRecovery(key, now: now)
            default: gate.sessions.beginKeeping(key, now: now)
            }
        guard begins else { return }
        counts.renewals += 1
        startLogin(key)
    }

    // MARK: Rules

    private mutating func checkRules() {
        for (name, account) in server.accounts {
            // A value that the server never took is refused once; one that it took is in doubt at first (rules 3 and 4).
            for (password, count) in account.refusals where count > 1 && !account.taken.contains(password) {
                broken = broken ?? "\(name)'s wrong password \(password) was sent \(count) times"
            }
            if account.codes.values.contains(where: { $0 > 1 }) { broken = broken ?? "\(name)'s code was used twice" }
        }
        // Logins of this challenge are told how many attempts remain; nothing else sends its passwords.
        for name in ["ann", "bob"] where server.accounts[name]?.remaining ?? 1 < 1 {
            broken = broken ?? "\(name)'s last attempt was used"
        }
        for exchange in exchanges.keys.sorted() {
            guard case .waiting(let key, _) = exchanges[exchange] else { continue }
            let isTried = exchanges.values.contains {
                if case .sent(key, _, _, isTrial: true, _) = $0 { true } else { false }
            }
            let isConfirmed = confirmations.contains { $0.key.isSibling(of: key) }
            if !isTried, !isConfirmed, !logins.contains(where: { $0.key.isSibling(of: key) }) {
                broken = broken ?? "\(exchange) waits for \(key), and nobody will tell it"
            }
        }
        // One that was tried while its credential was found to be wrong may still be under way when the next is tried.
        let tried = exchanges.values.compactMap {
            if case .sent(_, let held, _, isTrial: true, _) = $0 { held.generation } else { nil }
        }
        if Set(tried).count < tried.count { broken = broken ?? "two try one session" }
    }

    // MARK: Helpers

    private mutating func pickKey() -> SessionKey { ModelKeys.all.randomElement(using: &random) ?? ModelKeys.all[0] }

    private mutating func chance() -> Double { Double.random(in: 0..<1, using: &random) }

    private func digests(_ password: Int) -> AttemptDigests { AttemptDigests(own: [UInt8(password)]) }

    private func field(_ text: String) -> InjectedField { InjectedField(name: .authorization, value: Secret(text)) }

    private func failure(_ code: LoginFailure.Code, _ key: SessionKey) -> LoginFailure {
        LoginFailure(code, challenge: key.challenge, detail: "")
    }
}

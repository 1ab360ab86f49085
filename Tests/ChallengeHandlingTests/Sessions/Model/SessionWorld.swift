// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport

/// One schedule: callers, logins, a server and an operator take steps in a random order, and after each step the rules hold.
///
/// It drives a `SessionTable` and a `LatchTable` as the client does (`ClientRuntime+Logins`, `Exchange+Sessions`), one step
/// of a conversation at a time, so that anything can happen between two.
struct SessionWorld {
    var table = SessionTable<Int>(limits: SessionLimits(waiters: 12, keys: 8))
    var latches = LatchTable()
    var server = ModelServer()
    var now: Int64 = 1_000_000
    var exchanges: [Int: ModelExchange] = [:]
    var logins: [ModelLogin] = []
    /// The confirmations under way, and the passwords that some server is known to have accepted.
    var confirmations: [(key: SessionKey, held: HeldSession, password: Int)] = []
    var marks: Set<String> = []
    var broken: String?
    private(set) var counts = Counts()
    private var lastExchange = 0
    private var random: SplitMix

    /// What has happened, so that a test can tell that its schedules were no idle ones.
    struct Counts {
        var answers = 0, logins = 0, trials = 0, rejections = 0, shared = 0, renewals = 0, latched = 0, givenUp = 0
        var confirmations = 0, resources = 0
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
        case 95: _ = table.drop { [name = pickKey().credential] in $0.credential == name }
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
        ask(lastExchange, pickKey(), rejected: nil, rounds: 0)
    }

    private mutating func ask(_ exchange: Int, _ key: SessionKey, rejected: UInt64?, rounds: Int) {
        let before = table.held(key)
        exchanges[exchange] = nil
        switch table.request(key, rejected: rejected, waiter: exchange, now: now) {
        case .use(let held): send(exchange, key, held, isTrial: false, rounds: rounds)
        case .prove(let held): send(exchange, key, held, isTrial: true, rounds: rounds)
        case .wait:
            exchanges[exchange] = .waiting(key)
            counts.shared += 1
        case .lead:
            if let before, before.generation != rejected, !before.isExpired(at: now) {
                broken = "a login while a session was there"
            }
            exchanges[exchange] = .waiting(key)
            startLogin(key)
        case .refuse, .overloaded: break
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
        let isLatched = latches.closedLatch(ModelKeys.latch(key), digest: [UInt8(password)], now: now) != nil
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
            return tell(table.finish(login.key, with: .failure(late), now: now, chance: chance()), of: login.key)
        }
        tell(table.finish(login.key, with: result(of: login), now: now, chance: chance()), of: login.key)
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
        guard server.takes(password, of: key.credential) else { return .failure(reject(password, key)) }
        let ends = Bool.random(using: &random) ? now + Int64.random(in: 1_000..<200_000, using: &random) : nil
        return .success(Session(fields: [field(server.token(for: key.credential))], expiresAt: ends))
    }

    private mutating func reject(_ password: Int, _ key: SessionKey) -> LoginFailure {
        counts.rejections += 1
        latches.close(ModelKeys.latch(key), digest: [UInt8(password)], Latch(reason: .rejected, closedAt: now))
        return failure(.rejected, key)
    }

    private mutating func send(_ exchange: Int, _ key: SessionKey, _ held: HeldSession, isTrial: Bool, rounds: Int) {
        if !held.text.hasPrefix("\(key.credential)/") { broken = "\(key) got the session \(held.text)" }
        if isTrial { counts.trials += 1 }
        if let password = held.password,
            latches.closedLatch(ModelKeys.latch(key), digest: [UInt8(password)], now: now) != nil
        {
            broken = "a rejected credential is sent again"
        }
        exchanges[exchange] = .sent(key, held, isTrial: isTrial, rounds: rounds)
    }

    /// The server answers one of the requests that are under way.
    private mutating func answerOne() {
        let sent = exchanges.keys.sorted().filter { if case .sent = exchanges[$0] { true } else { false } }
        guard let exchange = sent.randomElement(using: &random),
            case .sent(let key, let held, let isTrial, let rounds) = exchanges[exchange]
        else { return }
        exchanges[exchange] = nil
        counts.answers += 1
        if server.isDown {
            if isTrial { judge(exchange, key, held, .undecided) }
        } else if let password = held.password {
            // One of four addresses is not for this user.
            let isForbidden = Int.random(in: 0..<4, using: &random) == 0
            if isForbidden { counts.resources += 1 }
            if server.takes(password, of: key.credential), !isForbidden {
                if isTrial {
                    marks.insert("\(key.credential)/\(password)")
                    judge(exchange, key, held, .accepted)
                }
            } else {
                refused(exchange, key, held, password, rounds)
            }
        } else if !server.isValid(held.text), rounds < 8 {
            ask(exchange, key, rejected: held.generation, rounds: rounds + 1)
        }
    }

    private mutating func refused(
        _ exchange: Int, _ key: SessionKey, _ held: HeldSession, _ password: Int, _ rounds: Int
    ) {
        switch table.doubt(key, generation: held.generation, waiter: exchange, now: now) {
        case .keep, .overloaded: judge(exchange, key, held, .undecided)
        case .over:
            judge(exchange, key, held, .undecided)
            if rounds < 8 { ask(exchange, key, rejected: held.generation, rounds: rounds + 1) }
        case .wait: exchanges[exchange] = .waiting(key)
        case .confirm(let session):
            exchanges[exchange] = .waiting(key)
            counts.confirmations += 1
            confirmations.append((key, session, password))
        }
    }

    /// What a client does that asks where the password was accepted last; one that was never accepted anywhere is rejected at once.
    private mutating func endConfirmation() {
        guard let index = confirmations.indices.randomElement(using: &random) else { return }
        let (key, held, password) = confirmations.remove(at: index)
        let isMarked = marks.contains("\(key.credential)/\(password)")
        if isMarked, server.isDown {
            return tell(table.confirm(key, generation: held.generation, .unknown, now: now), of: key)
        }
        if isMarked, server.takes(password, of: key.credential) {
            return tell(table.confirm(key, generation: held.generation, .stillGood, now: now), of: key)
        }
        if isMarked, server.accounts[key.credential]?.password == password {
            broken = "\(key.credential)'s password \(password), which was accepted, is latched by one resource"
        }
        marks.remove("\(key.credential)/\(password)")
        tell(table.reject(key, generation: held.generation, reject(password, key), now: now), of: key)
    }

    private mutating func judge(
        _ exchange: Int, _ key: SessionKey, _ held: HeldSession, _ proof: SessionTable<Int>.Proof
    ) {
        tell(table.judge(key, generation: held.generation, proof, by: exchange), of: key)
    }

    private mutating func tell(
        _ told: [(waiter: Int, outcome: SessionTable<Int>.Outcome)], of key: SessionKey
    ) {
        for (waiter, outcome) in told {
            guard case .waiting(let wanted) = exchanges[waiter] else {
                broken = "\(waiter) is told \(outcome), but does not wait"
                return
            }
            exchanges[waiter] = nil
            switch outcome {
            case .askAgain: ask(waiter, wanted, rejected: nil, rounds: 0)
            case .failed: break
            case .prove(_, let held): send(waiter, wanted, held, isTrial: true, rounds: 0)
            case .kept(let held, _), .won(let held): send(waiter, wanted, held, isTrial: false, rounds: 0)
            }
        }
    }

    /// A caller goes away, whatever its exchange does.
    private mutating func giveUp() {
        guard let exchange = exchanges.keys.sorted().randomElement(using: &random) else { return }
        switch exchanges.removeValue(forKey: exchange) {
        case .waiting(let key): table.leave(key, waiter: exchange)
        case .sent(let key, let held, isTrial: true, _): judge(exchange, key, held, .undecided)
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
        _ = latches.unlatch(challenge: key.challenge)
        table.forgetFailures(of: key.challenge)
        for one in ModelKeys.all where one.challenge == key.challenge {
            server.accounts[one.credential]?.refusals = [:]
        }
    }

    /// What the daemon does by itself: renews ahead of an end, tries again what has failed, keeps what is to be kept.
    private mutating func tend() {
        let key = pickKey()
        let isDue = table.held(key)?.renewAt.map { now >= $0 } ?? false
        let begins =
            switch Int.random(in: 0..<3, using: &random) {
            case 0: isDue && table.beginRenewal(key, now: now)
            case 1: table.beginRecovery(key, now: now)
            default: table.beginKeeping(key, now: now)
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
        }
        for exchange in exchanges.keys.sorted() {
            guard case .waiting(let key) = exchanges[exchange] else { continue }
            let isTried = exchanges.values.contains {
                if case .sent(key, _, isTrial: true, _) = $0 { true } else { false }
            }
            let isConfirmed = confirmations.contains { $0.key.isSibling(of: key) }
            if !isTried, !isConfirmed, !logins.contains(where: { $0.key.isSibling(of: key) }) {
                broken = broken ?? "\(exchange) waits for \(key), and nobody will tell it"
            }
        }
        // One that was tried while its credential was found to be wrong may still be under way when the next is tried.
        let tried = exchanges.values.compactMap {
            if case .sent(_, let held, isTrial: true, _) = $0 { held.generation } else { nil }
        }
        if Set(tried).count < tried.count { broken = broken ?? "two try one session" }
    }

    // MARK: Helpers

    private mutating func pickKey() -> SessionKey { ModelKeys.all.randomElement(using: &random) ?? ModelKeys.all[0] }

    private mutating func chance() -> Double { Double.random(in: 0..<1, using: &random) }

    private func field(_ text: String) -> InjectedField { InjectedField(name: .authorization, value: Secret(text)) }

    private func failure(_ code: LoginFailure.Code, _ key: SessionKey) -> LoginFailure {
        LoginFailure(code, challenge: key.challenge, detail: "")
    }
}

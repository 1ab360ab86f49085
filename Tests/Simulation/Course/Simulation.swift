// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import EventLoop
import Glibc
import Secrets

/// A daemon with its callers, servers, credentials, disk and clock, on one thread. Everything that happens follows from the seed.
///
/// One step is one event: a turn of a worker's loop, a piece of a message that arrives, a server's answer, a write of the disk, an
/// act of a caller, an instant that passes, a fault, an act of an operator.
final class Simulation: @unchecked Sendable {
    /// The beginning of every secret, which no random text in base64 has.
    static let secretMark = "zQ..7"

    let seed: UInt64
    var chance: Chance
    let clock: ManualLoopClock
    let weather: Weather
    let setting: Setting
    var agenda = Agenda()
    private(set) var servers: [SimulatedServer] = []
    private lazy var maker = ServerMaker(self, of: kind)
    /// The kind of all servers, if one is asked for.
    private let kind: ServerMaker.Kind?
    var slowAnswers = SlowAnswers()
    private(set) var disks: [SimulatedDisk] = []
    lazy var rules = Rules(self)
    private(set) lazy var attempts = AttemptWatch(self)
    private(set) lazy var logins = LoginWatch(self)
    private(set) lazy var sessions = SessionWatch(self)
    lazy var carried = CarriedSessions(self)
    lazy var judgements = LostJudgements(self)
    private(set) var processes: [SimulatedProcess] = []
    private var callers: [SimulatedCaller] = []
    private var guests: [any Guest] = []
    private(set) var orders: [Int: Order] = [:]
    private(set) var steps = 0
    /// The first rule that was broken.
    private(set) var violation: String?
    /// True while things may go wrong.
    private(set) var isStormy = true
    /// True while callers begin requests.
    var isOpen: Bool { isAtWork && !isResting }
    private var isAtWork = true
    /// True while all callers come to rest, so that a longer time passes.
    private var isResting = false
    var callersLost = 0
    /// True if the story of this run is wanted.
    private let isTold: Bool
    /// The last events.
    private(set) var story: [String] = []
    /// The time of the last fault, in ms since 1970.
    private(set) var lastFault: Int64 = 0
    private let begin: LoopInstant
    /// A number that two runs of one seed have in common, if they are the same.
    private(set) var trace: UInt64 = 0
    /// The time at the end of each step, in ms since 1970.
    private var times: [Int64] = []
    private var lastOrder = 0
    private var drainEnd = 0
    private var isCondemned = false
    /// The loops of processes that have ended.
    var endedLoops: [EventLoop] = []

    init(seed: UInt64, file: String, isTold: Bool = false, scene: Scene? = nil) throws {
        self.seed = seed
        self.isTold = isTold
        chance = Chance(seed: seed)
        let weather = Weather(&chance)
        self.weather = scene?.weather ?? weather
        begin = LoopInstant(nanoseconds: 1_000_000_000_000)
        clock = ManualLoopClock(start: begin)
        let count = chance.pick(1...3)
        setting = Setting(&chance, self.weather, servers: count, file: file, scene: scene)
        kind = scene?.kind
        for _ in 0..<setting.nodes { disks.append(try SimulatedDisk(self)) }
        for number in 0..<count { servers.append(maker.makeServer(number)) }
        let store = setting.nodes > 1 ? SimulatedSessionStore(self) : nil
        for node in 0..<setting.nodes {
            processes.append(
                try SimulatedProcess(
                    in: self, settings: try setting.settings(of: servers), workers: setting.workers, node: node,
                    sharingBy: store))
        }
        for number in 0..<setting.callers {
            callers.append(SimulatedCaller(in: self, token: [nil, nil, CallerToken.visitor, .clerk][number % 4]))
        }
        guests = Guests.all(in: self)
        for process in processes { process.tick() }
    }

    /// The process that runs, or that of the first of several nodes.
    var process: SimulatedProcess { processes[0] }

    /// Its disk.
    var disk: SimulatedDisk { disks[0] }

    /// The time in ms since 1970.
    var now: Int64 { 1_795_276_800_000 + Int64(clock.now.nanoseconds(since: begin) / 1_000_000) }

    // MARK: What others ask

    /// Returns the server at `origin`.
    func server(at origin: Origin) -> SimulatedServer? {
        (servers + maker.providers).first { $0.isAt(origin) }
    }

    /// Returns true if a caller waits for the answer to the order of that number.
    func awaits(_ number: Int) -> Bool { callers.contains { $0.order?.number == number } }

    /// Notes the outcome of a login.
    func loginEnded(_ challenge: String, isEstablished: Bool, isEmpty: Bool) {
        account(named: challenge)?.loginEnded(isEstablished: isEstablished, isEmpty: isEmpty)
    }

    /// Records a check of a session without a usable answer; `isComparison`: a check without the session was answered.
    func lookFailed(at origin: Origin, isComparison: Bool) {
        server(at: origin)?.protection.account.lookFailed(isComparison: isComparison)
    }

    /// Returns the account of the challenge of that name.
    func account(named name: String) -> Account? {
        servers.first { $0.protection.challengeName == name || $0.protection.account.name == name }?.protection.account
    }

    /// Returns the names of the challenges of an account.
    func challenges(of account: Account) -> [String] {
        servers.map(\.protection).filter { $0.account === account }.map(\.challengeName)
    }

    /// Returns the protection whose login has that name: its challenge's name, or its server's for an upstream's login.
    func protection(ofLogin name: String) -> (any Protection)? {
        servers.first { $0.protection.challengeName == name || $0.name == name }?.protection
    }

    /// Returns a login at a node, by the name of its challenge.
    func login(_ name: String, at node: Int) -> WatchedLogin {
        WatchedLogin(name: protection(ofLogin: name)?.challengeName ?? name, node: node)
    }

    /// Returns true once in `count` times while faults happen.
    func isFault(_ count: Int) -> Bool {
        guard weather.hasFaults, isStormy, chance.oneIn(count) else { return false }
        lastFault = now
        return true
    }

    /// Returns true once in `count` times while the disk fails, and always while it is down.
    func isDiskFault(_ count: Int) -> Bool {
        weather.hasDiskFaults && isStormy && (disk.isDown || chance.oneIn(count))
    }

    /// Adds an event that happens next, or within seconds if it is late.
    func happens(late isLate: Bool, _ event: @escaping () -> Void) {
        guard isLate else { return agenda.add(event) }
        let longest = chance.pick([300, 3_000, 9_000, 30_000])
        agenda.add(at: now + Int64(chance.pick(1...longest))) { [self] in
            if weather.hasFaults { lastFault = now }
            event()
        }
    }

    /// Has the process killed in the next step, once in a while.
    func mayBeKilled() { if weather.restarts, isStormy, chance.oneIn(3) { isCondemned = true } }

    /// Returns the time at the end of a step, in ms since 1970.
    func time(of step: Int) -> Int64 { step < times.count ? times[step] : now }

    private func advance(by duration: Duration) {
        clock.advance(by: duration)
        agenda.wake(at: now)
        for process in processes { process.catchUp() }
    }

    /// True if one caller waits, and no other.
    var isAlone: Bool { callers.count { !$0.isIdle } == 1 }

    /// Returns a new request for one of the servers.
    func makeOrder(of caller: CallerToken?) -> Order {
        lastOrder += 1
        if callers.allSatisfy(\.isIdle) { sessions.restBegan() }
        var order = Order(lastOrder, to: chance.pick(servers), using: &chance, weather: weather)
        order.caller = caller?.name
        (order.began, order.restEndsBefore) = (now, order.server.restEnds)
        order.server.protection.alter(&order)
        orders[lastOrder] = order
        return order
    }

    /// True if the daemon may have no answer for a caller, or no place.
    var mayRefuse: Bool { process.isDraining || rules.restarts > 0 || setting.listeners.isCrowded }

    /// The number of ordinary connections that certainly hold a slot; unknown (0) if several workers look for one.
    var heldConnections: Int { setting.workers == 1 ? callers.count(where: \.isHeld) : 0 }

    /// Records events for a reader of one run.
    func tell(_ what: @autoclosure () -> String) {
        guard isTold else { return }
        story.append("\(steps) \(Double((now - 1_795_276_800_000) / 10) / 100) \(what())")
        if story.count > 8_000 { story.removeFirst(4_000) }
    }

    /// Notes the first rule that is broken.
    func violated(_ rule: String) { if violation == nil { violation = "step \(steps): \(rule)" } }

    // MARK: The course of a run

    /// Runs `count` steps, and then until all is quiet, or until a rule is broken.
    func run(steps count: Int) {
        while steps < count, violation == nil { step() }
        isStormy = false
        isAtWork = false
        finish(within: 60_000)
        if violation == nil { checkCalm() }
        for caller in callers { caller.disconnect() }
        for guest in guests { guest.disconnect() }
        for process in processes { process.end() }
    }

    /// Lets go of everything that holds it, so that its memory is free.
    func release() {
        // Work enqueued after the end of a process keeps its loop alive.
        for loop in endedLoops { loop.run() }
        endedLoops = []
        (servers, disks, processes, callers, guests) = ([], [], [], [], [])
        (orders, times, agenda, maker) = ([:], [], Agenda(), ServerMaker(self, of: kind))
        slowAnswers = SlowAnswers()
    }

    private func finish(within limit: Int) {
        let end = steps + limit
        while violation == nil, steps < end, !isQuiet { step() }
        if violation == nil, !isQuiet {
            violated(
                "it does not come to rest: \(callers.filter { !$0.isIdle }.count) callers wait, \(agenda.count) events")
        }
    }

    private var isQuiet: Bool {
        agenda.isEmpty && callers.allSatisfy(\.isIdle) && guests.allSatisfy(\.isIdle)
            && processes.allSatisfy { $0.isQuiet && !$0.isDraining }
    }

    /// Judges the calm: nothing goes wrong any more, so all that can be answered is.
    private func checkCalm() {
        for server in servers where server.protection.account.isRight {
            (server.protection as? CheckProtection)?.giveAttemptsBack()
        }
        for server in servers {
            let account = server.protection.account
            for process in processes { process.unlatch(server.protection.challengeName) }
            account.unlatched()
        }
        for _ in 0..<1_200 {
            advance(by: .milliseconds(100))
            while let event = agenda.take(using: &chance) {
                event()
                for process in processes { process.settle() }
            }
        }
        isAtWork = true
        rules.expectsSuccess = true
        for _ in 0..<400 where violation == nil { step() }
        isAtWork = false
        finish(within: 60_000)
    }

    /// Lets one event happen.
    func step() {
        steps += 1
        slowAnswers.look()
        let kind = chance.below(100)
        trace = (trace ^ UInt64(kind) ^ UInt64(agenda.count) << 8 ^ chance.state) &* 0x0000_0100_0000_01b3
        switch kind {
        case 0..<42: chance.pick(processes).turn()
        case 42..<74: if let event = agenda.take(using: &chance) { event() } else { chance.pick(processes).turn() }
        case 74..<94:
            if chance.oneIn(setting.listeners.isCrowded ? 3 : 6) {
                chance.pick(guests).act()
            } else {
                chance.pick(callers).act()
            }
        case 94..<99: pass()
        default: happen()
        }
        if process.isDraining {
            drainStep()
        } else if isCondemned, isStormy {
            replaceProcess(isKilled: true)
        }
        isCondemned = false
        while times.count <= steps { times.append(now) }
    }

    private func pass() {
        if chance.oneIn(200) { isResting = true }
        let isQuiet = isResting && isQuiet
        if isQuiet { isResting = false }
        let kind = isQuiet ? chance.below(3) : chance.below(24)
        guard kind < 3, agenda.count == 0, !callers.contains(where: \.isSending), !slowAnswers.isUrgent else {
            return pass(.microseconds(chance.pick(10...3_000)))
        }
        // Long times pass only if nothing else can happen: nothing here is slow without a fault.
        for process in processes { process.settle() }
        guard agenda.count == 0 else { return }
        // In small pieces, since something may begin meanwhile that does not take so long.
        let longest = attempts.isPausing ? 8 : 50
        let pieces = kind > 0 || attempts.isPausing ? chance.pick(1...longest) : chance.pick(200...900)
        for _ in 0..<pieces where agenda.count == 0 { pass(.milliseconds(100)) }
    }

    private func pass(_ duration: Duration) {
        for caller in callers { caller.timePasses(by: duration) }
        advance(by: duration)
    }

    private func happen() {
        let process = chance.pick(processes)
        guard chance.oneIn(4) else { return process.tick() }
        guard isStormy else { return process.lookAtCredentials() }
        let server = chance.pick(servers)
        let account = server.protection.account
        let act = chance.below(14)
        tell("act \(act) at \(account.name)")
        switch act {
        case 0 where weather.endsSessions, 7 where weather.endsSessions, 8 where weather.endsSessions:
            server.protection.endSessions()
        case 1 where weather.changesCredentials:
            account.change()
            // Many servers end the sessions of a password that is changed.
            if server.protection is ApplicationForm, chance.oneIn(2) { server.protection.endSessions() }
        case 2 where weather.changesCredentials: account.store(account.makeValue())
        case 3 where weather.changesCredentials: account.store(chance.oneIn(4) ? nil : account.right)
        case 4 where weather.changesCredentials:
            process.unlatch(server.protection.challengeName)
            account.unlatched()
            (server.protection as? CheckProtection)?.giveAttemptsBack()
        case 5 where weather.reloads: reload()
        case 6 where weather.restarts && !process.isDraining && chance.oneIn(3): restart()
        case 9 where weather.hasFaults: server.directoryAwayUntil = now + Int64(chance.pick(1...60_000))
        case 10 where weather.hasDiskFaults: disk.isDown.toggle()
        case 11 where weather.hasRefusals: server.resources.permit(chance.below(SharedResources.count), now: now)
        default: process.lookAtCredentials()
        }
    }

    private func reload() {
        sessions.reloaded()
        if chance.oneIn(2) { setting.listeners.change() }
        do { try process.apply(try setting.settings(of: servers)) } catch { violated("a reload fails: \(error)") }
    }

    // MARK: Restarts

    private func restart() {
        if chance.oneIn(2) {
            replaceProcess(isKilled: true)
        } else {
            process.drain()
            drainEnd = steps + chance.pick(10...3_000)
        }
    }

    private func drainStep() {
        if process.isDrained, disk.pending == 0 { return replaceProcess(isKilled: false) }
        if steps == drainEnd { process.turnAway() }
        if steps > drainEnd + 400 { replaceProcess(isKilled: false) }
    }

    private func replaceProcess(isKilled: Bool) {
        let image = process.image()
        if isKilled || disk.pending > 0 || disk.isBehind {
            for server in servers { server.protection.account.forgotten() }
        }
        for server in servers {
            // A login that was under way, and the sessions that are not handed over.
            server.protection.account.reasons += 2
            server.protection.account.hasLoggedIn = false
            server.protection.account.hasAnswered = false
        }
        process.end()
        rules.restarts += 1
        attempts.processEnded()
        logins.processEnded()
        sessions.processEnded()
        do {
            try disk.open()
            processes[0] = try SimulatedProcess(
                in: self, settings: try setting.settings(of: servers), workers: setting.workers)
        } catch {
            return violated("a start fails: \(error)")
        }
        for server in servers { server.protection.tell(process) }
        if !chance.oneIn(4) { process.adopt(image) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SessionStoreModel
import SharedSessions
import TestSupport

/// Nodes, the session store, and the server that they log in to, in simulated time. Everything that happens follows from the seed.
final class NodeSimulation {
    let weather: Weather
    let mutant: Mutant?
    private(set) var now: Int64 = 0
    var random: SplitMix
    var server = SimulatedServer()
    var rules = SharingRules()
    var report = SharingReport()
    private(set) var nodes: [SimulatedNode] = []
    private(set) lazy var sessionStore = SimulatedStore(simulation: self)
    private var queue = EventQueue()
    /// From here on nothing goes wrong any more.
    private(set) var isCalm = false
    private var wantsCallers = true

    static let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "bank", credential: "ann")

    init(seed: UInt64, weather: Weather, mutant: Mutant? = nil) {
        self.weather = weather
        self.mutant = mutant
        random = SplitMix(state: seed)
        rules.seed = seed
        nodes = (0..<weather.nodes).map { SimulatedNode($0, self) }
    }

    // MARK: Time and chance

    func after(_ delay: Int64, _ action: @escaping () -> Void) { queue.insert(at: now + max(delay, 0), action) }

    /// Returns a number in 0..<1; faster than the library's in debug builds.
    func randomNumber() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    func pick(_ range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(randomNumber() * Double(range.upperBound - range.lowerBound + 1))
    }

    /// Returns true for a fault of that likelihood.
    func isBad(_ likelihood: Double) -> Bool { likelihood > 0 && !isCalm && randomNumber() < likelihood }

    // MARK: The course of a run

    /// Runs to the end, or until a rule is broken.
    func run() -> SharingRules {
        for node in nodes { call(node, after: weather.isStampede ? 0 : pick(0...weather.callerPause)) }
        for node in nodes { tick(node) }
        arrangeFaults()
        after(weather.duration) { [unowned self] in endFaults() }
        let end = weather.duration + weather.calm
        after(end - 10_000) { [unowned self] in wantsCallers = false }
        while let next = queue.removeFirst(), next.time <= end, rules.broken == nil {
            now = next.time
            next.action()
        }
        if rules.broken == nil, weather.calm > SharingRules.longestWait { checkEnd() }
        report.server = server
        return rules
    }

    private func call(_ node: SimulatedNode, after delay: Int64) {
        after(delay) { [unowned self] in
            guard wantsCallers else { return }
            node.beginRequest()
            call(node, after: pick(1...weather.callerPause))
        }
    }

    private func tick(_ node: SimulatedNode) {
        after(1_000) { [unowned self] in
            node.renewIfDue()
            rules.checkWaiting(node, now: now)
            tick(node)
        }
    }

    private func arrangeFaults() {
        func times(_ count: Int, _ action: @escaping () -> Void) {
            for _ in 0..<count { after(pick(0...weather.duration - 1), action) }
        }
        times(weather.kills) { [unowned self] in nodes[Int(pick(0...Int64(nodes.count - 1)))].die() }
        times(weather.outages) { [unowned self] in sessionStore.goAway(for: pick(100...12_000), losingData: false) }
        times(weather.dataLosses) { [unowned self] in sessionStore.goAway(for: pick(100...4_000), losingData: true) }
        times(weather.slowTimes) { [unowned self] in sessionStore.slowDown(for: pick(1_000...8_000)) }
        times(weather.partitions) { [unowned self] in
            nodes[Int(pick(0...Int64(nodes.count - 1)))].loseConnection(for: pick(500...15_000))
        }
        times(weather.restartsOfServer) { [unowned self] in server.restart() }
        times(weather.drops) { [unowned self] in nodes[Int(pick(0...Int64(nodes.count - 1)))].dropForAll() }
        times(weather.passwords) { [unowned self] in changePassword() }
    }

    /// The server's password changes; each node learns it some time, and one or the other of a wrong one in between.
    private func changePassword() {
        let password = server.changePassword()
        if randomNumber() < 0.7 { server.restart() }
        for node in nodes {
            if randomNumber() < 0.2 {
                after(pick(0...8_000)) { [unowned self] in if !isCalm { node.learn(password + 1_000) } }
            }
            after(pick(0...15_000)) { [unowned self] in if server.password == password { node.learn(password) } }
        }
    }

    private func endFaults() {
        isCalm = true
        sessionStore.comeBack()
        for node in nodes {
            node.comeBack()
            node.learn(server.password)
        }
    }

    private func checkEnd() {
        for node in nodes {
            rules.checkEnd(node, wall: node.wall, server: server, now: now)
        }
        // Each has had time to learn of the last renewal.
        let held = Set(nodes.map { $0.machine.generation })
        if held.count > 2 { rules.fail("at the end there are sessions of \(held.count) generations: \(held.sorted())") }
    }
}

/// A node that does something wrong, to see that the rules notice.
enum Mutant: CaseIterable {
    /// Asks for the lease while it logs in, and begins again when it is granted.
    case beginsTwice
    /// Publishes under any lease that exists.
    case ignoresFence
    /// Asks with another token each time.
    case changesToken
    /// Does not read the latches before it logs in.
    case ignoresLatches
    /// Assumes that it holds the lease although the answer is to wait.
    case doesNotWait
    /// Asks for any session, also for one that was refused.
    case forgetsRefusal
}

/// Future actions by time. Those of one moment keep their order.
struct EventQueue {
    private struct Item {
        let time: Int64
        let number: Int
        let action: () -> Void
    }

    private var heap: [Item] = []
    private var lastNumber = 0

    mutating func insert(at time: Int64, _ action: @escaping () -> Void) {
        lastNumber += 1
        heap.append(Item(time: time, number: lastNumber, action: action))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isBefore(child, parent) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeFirst() -> (time: Int64, action: () -> Void)? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.time, first.action)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = 2 * parent + 1
            guard least < heap.count else { return }
            if least + 1 < heap.count, isBefore(least + 1, least) { least += 1 }
            guard isBefore(least, parent) else { return }
            heap.swapAt(least, parent)
            parent = least
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        heap[left].time < heap[right].time
            || (heap[left].time == heap[right].time && heap[left].number < heap[right].number)
    }
}

/// The faults of a simulated group of nodes. Times are in milliseconds; likelihoods are between 0 and 1.
struct Weather {
    var nodes = 3
    /// Duration of the faults, and of the time without faults after it.
    var duration: Int64 = 60_000
    var calm: Int64 = 75_000
    /// Between two requests of one node's callers, at most.
    var callerPause: Int64 = 4_000
    /// That a message between a node and the session store is lost, comes twice, or takes seconds.
    var loss = 0.0, duplicates = 0.0, late = 0.0
    /// Largest error of a node's clock.
    var skew: Int64 = 0
    /// Number of each fault.
    var kills = 0, outages = 0, dataLosses = 0, slowTimes = 0, partitions = 0, restartsOfServer = 0, passwords = 0,
        drops = 0
    /// The likelihoods of a login that takes up to `longestLogin`, and of one that ends without a usable answer.
    var slowLogins = 0.0, unknown = 0.0
    var longestLogin: Int64 = 15_000
    /// The lifetime of a session.
    var life: Int64 = 30_000
    /// True if all nodes get their first requests at once.
    var isStampede = true

    /// Everything at once.
    static func storm(_ random: inout SplitMix) -> Weather {
        var weather = Weather()
        weather.nodes =
            Int.random(in: 0..<20, using: &random) == 0
            ? Int.random(in: 20...50, using: &random) : Int.random(in: 3...10, using: &random)
        if weather.nodes > 15 { weather.duration = 30_000 }
        func some(_ most: Int) -> Int { Int.random(in: 0...most, using: &random) }
        func share(_ most: Double) -> Double {
            Bool.random(using: &random) ? Double.random(in: 0..<most, using: &random) : 0
        }
        weather.loss = share(0.2)
        weather.duplicates = share(0.2)
        weather.late = share(0.1)
        weather.skew = Int64(some(2) * 2_000)
        weather.kills = some(4)
        weather.outages = some(2)
        weather.dataLosses = some(1)
        weather.slowTimes = some(1)
        weather.partitions = some(2)
        weather.restartsOfServer = some(2)
        weather.passwords = some(2)
        weather.drops = some(1)
        weather.slowLogins = share(0.4)
        weather.unknown = share(0.4)
        weather.isStampede = Bool.random(using: &random)
        // Leases run out while logins go on.
        if Int.random(in: 0..<4, using: &random) == 0 {
            weather.slowLogins = 0.8
            weather.partitions = 6
        }
        return weather
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SessionStoreModel

/// The model of the session store with a clock of its own and a network to the nodes. It does one thing at a time.
final class SimulatedStore {
    private unowned let simulation: NodeSimulation
    private(set) var model = SessionStoreModel()
    private(set) var isUp = true
    private var upAt: Int64 = 0
    private var slowUntil: Int64 = 0
    /// Time at which everything received so far is done, in microseconds.
    private var busyUntil: Int64 = 0
    private var clock: Int64

    /// CPU time of a command, and of a message to one node, in microseconds; measured on Redis 7.0.15.
    static let cost: Int64 = 30, message: Int64 = 2

    init(simulation: NodeSimulation) {
        self.simulation = simulation
        clock = 1_700_000_000_000 + simulation.pick(-10_000...10_000)
    }

    /// By the session store's own clock.
    var time: Int64 { clock + simulation.now }

    /// Sends something to be done; `answered` may be called never, late, and more than once.
    func send<Answer>(
        from node: SimulatedNode, _ work: @escaping (inout SessionStoreModel, Int64) -> Answer,
        _ answered: @escaping (Answer) -> Void
    ) {
        let weather = simulation.weather
        for _ in 0..<(simulation.isBad(weather.duplicates) ? 2 : 1) where !simulation.isBad(weather.loss) {
            simulation.after(way()) { [unowned self] in
                guard isUp, node.isReachable else { return }
                let answer = carryOut(work)
                guard !simulation.isBad(weather.loss) else { return }
                simulation.after(queueing() + way()) { answered(answer) }
            }
        }
    }

    private func carryOut<Answer>(_ work: (inout SessionStoreModel, Int64) -> Answer) -> Answer {
        busyUntil = max(busyUntil, simulation.now * 1_000) + Self.cost
        simulation.report.count(at: simulation.now)
        let answer = work(&model, time)
        simulation.rules.check(model)
        for event in model.takeEvents() {
            for node in simulation.nodes where node.isConnected {
                busyUntil += Self.message
                guard !simulation.isBad(simulation.weather.loss) else { continue }
                simulation.after(queueing() + way()) { node.receive(event) }
            }
        }
        return answer
    }

    private func queueing() -> Int64 { max(0, busyUntil / 1_000 - simulation.now) }

    private func way() -> Int64 {
        if simulation.isBad(simulation.weather.late) { return simulation.pick(0...8_000) }
        return simulation.now < slowUntil ? simulation.pick(200...3_000) : simulation.pick(1...4)
    }

    // MARK: Faults

    func goAway(for time: Int64, losingData: Bool) {
        guard !simulation.isCalm else { return }
        isUp = false
        upAt = max(upAt, simulation.now + time)
        if losingData {
            model = SessionStoreModel()
            simulation.rules.dataWereLost()
            // Another machine takes over, with a clock of its own.
            clock += simulation.pick(-300...300)
        }
        for node in simulation.nodes { simulation.after(simulation.pick(0...50)) { node.noticeConnection() } }
        simulation.after(time) { [unowned self] in if simulation.now >= upAt { comeBack() } }
    }

    func slowDown(for time: Int64) { slowUntil = simulation.now + time }

    func comeBack() {
        if simulation.isCalm { slowUntil = 0 }
        guard !isUp else { return }
        isUp = true
        for node in simulation.nodes { simulation.after(simulation.pick(10...1_000)) { node.noticeConnection() } }
    }
}

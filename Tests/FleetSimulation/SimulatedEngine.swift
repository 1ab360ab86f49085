// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EngineModel

/// The model of the engine, with a clock of its own, one thing at a time, and a network between it and the hosts.
final class SimulatedEngine {
    private unowned let fleet: SimulatedFleet
    private(set) var model = EngineModel()
    private(set) var isUp = true
    private var upAt: Int64 = 0
    private var slowUntil: Int64 = 0
    /// When it has done all that came so far, in microseconds.
    private var busyUntil: Int64 = 0
    private var clock: Int64

    /// What one command costs, and one message to one host, in microseconds: of CPU, measured on Redis 7.0.15.
    static let cost: Int64 = 30, message: Int64 = 2

    init(fleet: SimulatedFleet) {
        self.fleet = fleet
        clock = 1_700_000_000_000 + fleet.pick(-10_000...10_000)
    }

    /// By the engine's own clock.
    var time: Int64 { clock + fleet.now }

    /// Sends something to be done; `answered` may be called never, late, and more than once.
    func send<Answer>(
        from host: SimulatedHost, _ work: @escaping (inout EngineModel, Int64) -> Answer,
        _ answered: @escaping (Answer) -> Void
    ) {
        let weather = fleet.weather
        for _ in 0..<(fleet.isBad(weather.duplicates) ? 2 : 1) where !fleet.isBad(weather.loss) {
            fleet.after(way()) { [unowned self] in
                guard isUp, host.isReachable else { return }
                let answer = carryOut(work)
                guard !fleet.isBad(weather.loss) else { return }
                fleet.after(queueing() + way()) { answered(answer) }
            }
        }
    }

    private func carryOut<Answer>(_ work: (inout EngineModel, Int64) -> Answer) -> Answer {
        busyUntil = max(busyUntil, fleet.now * 1_000) + Self.cost
        fleet.report.count(at: fleet.now)
        let answer = work(&model, time)
        fleet.rules.check(model)
        for news in model.takeNews() {
            for host in fleet.hosts where host.isConnected {
                busyUntil += Self.message
                guard !fleet.isBad(fleet.weather.loss) else { continue }
                fleet.after(queueing() + way()) { host.hear(news) }
            }
        }
        return answer
    }

    private func queueing() -> Int64 { max(0, busyUntil / 1_000 - fleet.now) }

    private func way() -> Int64 {
        if fleet.isBad(fleet.weather.late) { return fleet.pick(0...8_000) }
        return fleet.now < slowUntil ? fleet.pick(200...3_000) : fleet.pick(1...4)
    }

    // MARK: Faults

    func goAway(for time: Int64, losingData: Bool) {
        guard !fleet.isCalm else { return }
        isUp = false
        upAt = max(upAt, fleet.now + time)
        if losingData {
            model = EngineModel()
            fleet.rules.dataWereLost()
            // Another machine takes over, with a clock of its own.
            clock += fleet.pick(-300...300)
        }
        for host in fleet.hosts { fleet.after(fleet.pick(0...50)) { host.noticeConnection() } }
        fleet.after(time) { [unowned self] in if fleet.now >= upAt { comeBack() } }
    }

    func slowDown(for time: Int64) { slowUntil = fleet.now + time }

    func comeBack() {
        if fleet.isCalm { slowUntil = 0 }
        guard !isUp else { return }
        isUp = true
        for host in fleet.hosts { fleet.after(fleet.pick(10...1_000)) { host.noticeConnection() } }
    }
}

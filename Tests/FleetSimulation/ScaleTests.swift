// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import Testing

/// The numbers of `docs/scale.md`; `run` has ten thousand hosts.
@Suite("A large simulated fleet", .serialized)
struct ScaleTests {
    private let hosts = Int(ProcessInfo.processInfo.environment["COUNTERSIGN_FLEET"] ?? "") ?? 500

    private func weather(life: Int64, duration: Int64) -> Weather {
        var weather = Weather()
        weather.hosts = hosts
        weather.duration = duration
        weather.calm = 0
        weather.life = life
        return weather
    }

    private func say(_ what: String, _ fleet: SimulatedFleet) {
        let report = fleet.report
        let each = Double(report.commands * 100 / hosts) / 100
        print(
            """
            fleet \(what): \(hosts) hosts, \(report.leased) logins under leases, \(report.alone) alone; session after p50 \
            \(report.percentile(0.5)) ms, p99 \(report.percentile(0.99)) ms; engine \(report.commands) commands, \(each) each, at most \
            \(report.mostPerSecond) in a second
            """)
    }

    @Test("is served by one login when all its hosts start at once")
    func cold() {
        let fleet = SimulatedFleet(seed: 1, weather: weather(life: 3_600_000, duration: 10_000))
        #expect(fleet.run().broken == nil)
        #expect(fleet.server.logins == 1)
        #expect(fleet.report.commands <= 2 * hosts)
        say("cold", fleet)
    }

    @Test("loses a lease's life where the host dies that logs in")
    func leaderDies() {
        let fleet = SimulatedFleet(seed: 1, weather: weather(life: 3_600_000, duration: 15_000))
        fleet.after(25) { fleet.hosts.first { $0.machine.isLoggingIn }?.die() }
        #expect(fleet.run().broken == nil)
        #expect(fleet.report.leased == 2)
        say("leader killed", fleet)
    }

    @Test("renews by one login, and no caller waits for it")
    func renewal() {
        let fleet = SimulatedFleet(seed: 1, weather: weather(life: 60_000, duration: 150_000))
        #expect(fleet.run().broken == nil)
        #expect(fleet.server.logins <= 4)
        #expect(fleet.report.commands <= 10 * hosts)
        say("150 s of sessions that live for 60 s", fleet)
    }

    @Test("holds an outage out without a login, where its sessions live on")
    func outage() {
        let fleet = SimulatedFleet(seed: 1, weather: weather(life: 3_600_000, duration: 40_000))
        fleet.after(10_000) { fleet.engine.goAway(for: 10_000, losingData: true) }
        #expect(fleet.run().broken == nil)
        #expect(fleet.server.logins == 1)
        #expect(fleet.report.failed == 0)
        say("10 s without an engine", fleet)
    }

    @Test("logs in once per host in an outage in which all sessions end, over a while, and shares one again after it")
    func longOutage() {
        let fleet = SimulatedFleet(seed: 1, weather: weather(life: 60_000, duration: 100_000))
        fleet.after(40_000) { fleet.engine.goAway(for: 30_000, losingData: false) }
        #expect(fleet.run().broken == nil)
        #expect(fleet.report.alone <= hosts)
        #expect(fleet.server.logins <= hosts + 3)
        #expect(Set(fleet.hosts.map(\.machine.present)).count <= 2)
        say("30 s without an engine in which sessions end", fleet)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("A simulated fleet in fair weather")
struct FairWeatherTests {
    private func weather(hosts: Int, duration: Int64 = 20_000) -> Weather {
        var weather = Weather()
        weather.hosts = hosts
        weather.duration = duration
        weather.calm = 0
        weather.life = 600_000
        return weather
    }

    @Test("that is cold logs in once, however many requests come at once", arguments: [3, 50])
    func cold(hosts: Int) {
        let fleet = SimulatedFleet(seed: 1, weather: weather(hosts: hosts))
        for host in fleet.hosts { for _ in 0..<99 { fleet.after(0) { host.beginRequest() } } }
        #expect(fleet.run().broken == nil)
        #expect(fleet.server.logins == 1)
        #expect(fleet.report.waited.count >= hosts * 100)
        #expect(fleet.report.percentile(1) < 2_000)
    }

    @Test("logs in once more where the host dies that is at it, as soon as its lease has run out", arguments: 0..<20)
    func leaderDies(seed: Int) {
        let fleet = SimulatedFleet(seed: UInt64(seed), weather: weather(hosts: 3))
        fleet.after(25) { fleet.hosts.first { $0.machine.isLoggingIn }?.die() }
        #expect(fleet.run().broken == nil)
        #expect(fleet.report.leased == 2)
        #expect(fleet.report.longestWant > 4_000)
        // The lease, the spread of those who wait for it, and a login.
        #expect(fleet.report.longestWant < 6_000 + 1_000 + 1_000)
    }

    @Test("sends a rejected password again only where the host died that was told so", arguments: 0..<40)
    func rejection(seed: Int) {
        var weather = weather(hosts: 8, duration: 60_000)
        weather.calm = 75_000
        weather.life = 20_000
        weather.passwords = 3
        weather.kills = 6
        let fleet = SimulatedFleet(seed: UInt64(seed), weather: weather)
        let rules = fleet.run()
        #expect(rules.broken == nil)
        #expect(rules.repeats.keys.allSatisfy { $0 == .died }, "\(rules.repeats)")
        #expect(fleet.report.alone == 0)
    }

    @Test(
        "goes on with what it holds while the engine is away, and logs in no more than once for it", arguments: 0..<20)
    func outage(seed: Int) {
        let fleet = SimulatedFleet(seed: UInt64(seed), weather: weather(hosts: 10, duration: 60_000))
        fleet.after(20_000) { fleet.engine.goAway(for: 10_000, losingData: seed % 2 == 0) }
        #expect(fleet.run().broken == nil)
        #expect(fleet.server.logins == 1)
        #expect(fleet.report.failed == 0)
    }

    @Test("logs in once per life of a session, and all hosts take what one of them has renewed")
    func renewals() {
        var weather = weather(hosts: 30, duration: 200_000)
        weather.life = 40_000
        let fleet = SimulatedFleet(seed: 3, weather: weather)
        #expect(fleet.run().broken == nil)
        // Renewed ahead by a fifth of the life.
        #expect(fleet.server.logins >= 5 && fleet.server.logins <= 7)
        #expect(fleet.report.percentile(1) < 2_000)
        #expect(Set(fleet.hosts.map(\.machine.present)).count == 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("Schedules of attempts")
struct AttemptGateModelTests {
    /// Seeds, so that what one finds can be looked at again: `GateWorld(seed:)`.
    @Test(
        "in any order of events there is one login at a time, nobody waits for nothing, no rejected credential goes out again, no accepted one is latched by a resource, the last attempt is kept, no code is used twice, and nobody gets another's session",
        arguments: 0..<8)
    func schedules(part: Int) {
        var answers = 0, shared = 0, trials = 0, rejections = 0, renewals = 0, latched = 0, givenUp = 0
        var confirmations = 0, remembered = 0, spared = 0, codes = 0, restarts = 0
        for seed in (part * 300)..<((part + 1) * 300) {
            var world = GateWorld(seed: UInt64(seed))
            for step in 0..<150 {
                world.step()
                guard world.broken == nil else {
                    Issue.record("seed \(seed), step \(step): \(world.broken ?? "")")
                    return
                }
            }
            world.settle()
            guard world.broken == nil else {
                Issue.record("seed \(seed), at the end: \(world.broken ?? "")")
                return
            }
            answers += world.counts.answers
            shared += world.counts.shared
            trials += world.counts.trials
            rejections += world.counts.rejections
            renewals += world.counts.renewals
            latched += world.counts.latched
            confirmations += world.counts.confirmations
            givenUp += world.counts.givenUp
            remembered += world.counts.remembered
            spared += world.counts.spared
            codes += world.counts.codes
            restarts += world.counts.restarts
        }
        // The schedules reach what they are about.
        #expect(answers > 4_000)
        #expect(shared > 500)
        #expect(trials > 200)
        #expect(rejections > 200)
        #expect(renewals > 50)
        #expect(latched > 200)
        #expect(confirmations > 200)
        #expect(givenUp > 200)
        #expect(remembered > 30 && restarts > 200, "\(remembered), \(restarts)")
        #expect(spared > 20 && codes > 100, "\(spared), \(codes)")
    }
}

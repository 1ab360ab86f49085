// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

/// Waits that the kernel times: a few milliseconds each, with no bound above.
@Suite("Waits of the system's clock")
struct RealTimeTests {
    @Test("a timer never fires before its deadline, and its wait is rounded up to avoid a second wait")
    func timer() async throws {
        let thread = try EventLoopThread(name: "timers") { _ in }
        let loop = thread.loop
        let (deadline, fired) = await withCheckedContinuation { done in
            loop.execute {
                let deadline = LoopInstant.read().advanced(byNanoseconds: 3_300_000)
                let handler = Probe(timer: { _ in done.resume(returning: (deadline, LoopInstant.read())) })
                _ = loop.schedule(at: deadline, handler)
            }
        }
        #expect(fired >= deadline)
        stop(thread)
    }

    @Test("a wait hook is called again at its deadline, without a timer", arguments: [true, false])
    func hook(isManual: Bool) async throws {
        // A manual clock does not affect hooks.
        let thread = try EventLoopThread(name: "hooks", clock: isManual ? ManualLoopClock() : nil) { _ in }
        let loop = thread.loop
        let (set, met) = await withCheckedContinuation { done in
            loop.execute {
                let deadline = LoopInstant.read().advanced(byMilliseconds: 3)
                var isDone = false
                loop.add(
                    Script { now in
                        guard now >= deadline else { return WaitAdvice(didWork: false, deadline: deadline) }
                        if !isDone { done.resume(returning: (deadline, now)) }
                        isDone = true
                        return WaitAdvice(didWork: false)
                    })
            }
        }
        #expect(met >= set)
        stop(thread)
    }

    @Test("the loop measures the length of a turn")
    func turn() async throws {
        let thread = try EventLoopThread(name: "busy") { _ in }
        let loop = thread.loop
        let took = UInt64(2_000_000)
        let (longest, activity) = await withCheckedContinuation { done in
            loop.execute {
                let begun = LoopInstant.read()
                while loop.readNow() - begun < .milliseconds(2) {}
                // Comes after the turn of the long job.
                let handler = Probe(timer: { _ in
                    done.resume(returning: (loop.activity.longestTurn(at: loop.now), loop.activity))
                })
                _ = loop.schedule(at: begun, handler)
            }
        }
        #expect(longest >= took)
        #expect(activity.busy >= took)
        stop(thread)
    }
}

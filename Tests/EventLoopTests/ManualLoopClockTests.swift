// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite("A loop with a manual clock")
struct ManualLoopClockTests {
    private let clock = ManualLoopClock()

    /// Returns a loop that records its time whenever a timer fires; the timers are due after `seconds`.
    private func noting(_ seconds: [Int]) throws -> (thread: EventLoopThread, fired: Locked<[Int]>) {
        let fired = Locked<[Int]>([])
        let start = clock.now
        let thread = try EventLoopThread(name: "manual", clock: clock) { loop in
            let handler = Probe(timer: { tag in
                #expect(loop.now == start + .seconds(Int(tag)))
                fired.change { $0.append(Int(tag)) }
            })
            for delay in seconds { _ = loop.schedule(at: start + .seconds(delay), handler, tag: UInt64(delay)) }
        }
        return (thread, fired)
    }

    @Test("with a manual clock, timers fire at their deadlines, in order")
    func order() async throws {
        let (thread, fired) = try noting([5, 1, 3])
        await clock.settle()
        #expect(fired.value == [])
        clock.advance(by: .nanoseconds(2_999_999_999))
        await clock.settle()
        #expect(fired.value == [1])
        clock.advance(by: .nanoseconds(1))
        await clock.settle()
        #expect(fired.value == [1, 3])
        clock.advance(by: .seconds(3600))
        await clock.settle()
        #expect(fired.value == [1, 3, 5])
        #expect(await on(thread.loop) { thread.loop.now } == clock.now)
        stop(thread)
    }

    @Test("with a manual clock, a timer of one second fires 60 times in a minute")
    func again() async throws {
        let clock = clock
        let count = Locked(0)
        let thread = try EventLoopThread(name: "manual", clock: clock) { loop in
            let timer = LazyTimer(loop: loop)
            // The loop retains the timer while it is armed.
            timer.onExpiry = { [unowned timer] in
                count.change { $0 += 1 }
                timer.arm(at: loop.now + .seconds(1))
            }
            timer.arm(at: loop.now + .seconds(1))
        }
        clock.advance(by: .seconds(60))
        await clock.settle()
        #expect(count.value == 60)
        stop(thread)
    }

    @Test("when a manual clock has settled, everything that a timer caused has happened, on other loops too")
    func chain() async throws {
        let clock = clock
        let (first, second) = (
            try EventLoopThread(name: "first", clock: clock) { _ in },
            try EventLoopThread(name: "second", clock: clock) { _ in }
        )
        let steps = Locked(0)
        @Sendable func step(_ left: Int, at loop: EventLoop, _ other: EventLoop) {
            guard left > 0 else { return }
            steps.change { $0 += 1 }
            other.execute { step(left - 1, at: other, loop) }
        }
        await on(first.loop) { [first = first.loop, second = second.loop] in
            _ = first.schedule(at: clock.now + .seconds(9), Probe(timer: { _ in step(1000, at: first, second) }))
        }
        clock.advance(by: .seconds(9))
        await clock.settle()
        #expect(steps.value == 1000)
        stop(first)
        stop(second)
    }

    @Test("when a manual clock has settled, events at descriptors have been delivered")
    func arrived() async throws {
        let (reader, writer) = socketPair()
        let bytes = Locked(0)
        let thread = try EventLoopThread(name: "manual", clock: clock) { loop in
            loop.watch(
                reader, for: .read,
                handler: Probe { fd, _ in
                    var byte: UInt8 = 0
                    if unsafe read(fd, &byte, 1) == 1 { bytes.change { $0 += 1 } }
                })
        }
        for number in 1...100 {
            send("x", to: writer)
            await clock.settle()
            #expect(bytes.value == number)
        }
        stop(thread)
        close(reader)
        close(writer)
    }

    @Test("with a manual clock, a turn takes only as long as it advances the clock itself")
    func turn() async throws {
        let thread = try EventLoopThread(name: "manual", clock: clock) { _ in }
        let (loop, clock) = (thread.loop, clock)
        let took = await on(loop) {
            let begun = loop.readNow()
            clock.advance(by: .milliseconds(30))
            return loop.readNow() - begun
        }
        #expect(took == .milliseconds(30))
        clock.advance(by: .seconds(5))
        await clock.settle()
        let activity = await on(loop) { loop.activity }
        #expect(activity.busy == 30_000_000)
        #expect(activity.longestTurn(at: clock.now) == 30_000_000)
        stop(thread)
    }

    @Test("a manual clock without loops settles at once, and retains no loop")
    func noLoop() async throws {
        let clock = clock
        weak var observer: EventLoop?
        do {
            let thread = try EventLoopThread(name: "manual", clock: clock) { _ in }
            observer = thread.loop
            stop(thread)
        }
        #expect(observer == nil)
        clock.advance(by: .seconds(1))
        await clock.settle()
    }
}

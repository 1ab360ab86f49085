// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite("Timers")
struct TimerTests {
    @Test("timers fire in the order of their deadlines, equal ones in the order of their scheduling")
    func order() throws {
        let loop = try EventLoop()
        var fired: [UInt64] = []
        let handler = Probe(timer: { fired.append($0) })
        let past = LoopInstant(nanoseconds: 5)
        for tag in 0..<5 as Range<UInt64> { _ = loop.schedule(at: past, handler, tag: tag) }
        _ = loop.schedule(at: LoopInstant(nanoseconds: 1), handler, tag: 9)
        _ = loop.schedule(at: .never, handler, tag: 10)
        loop.turnOnce()
        #expect(fired == [9, 0, 1, 2, 3, 4])
    }

    @Test("a heap of thousands of timers, with every third one cancelled, fires the rest in order")
    func many() throws {
        let loop = try EventLoop()
        var random = SystemRandomNumberGenerator()
        var fired: [UInt64] = []
        let handler = Probe(timer: { fired.append($0) })
        var expected: [UInt64] = []
        var tokens: [(TimerToken, Int)] = []
        for index in 0..<3000 {
            let deadline = UInt64.random(in: 1...1_000_000, using: &random)
            tokens.append((loop.schedule(at: LoopInstant(nanoseconds: deadline), handler, tag: deadline), index))
            if index % 3 != 0 { expected.append(deadline) }
        }
        for (token, index) in tokens.shuffled() where index % 3 == 0 { #expect(loop.cancel(token)) }
        loop.turnOnce()
        #expect(fired == expected.sorted())
    }

    @Test("a spent or cancelled token does not cancel the timer that reuses its slot")
    func staleTokens() throws {
        let loop = try EventLoop()
        var fired: [UInt64] = []
        let handler = Probe(timer: { fired.append($0) })
        let past = LoopInstant(nanoseconds: 1)
        let cancelled = loop.schedule(at: past, handler, tag: 1)
        #expect(loop.cancel(cancelled))
        #expect(!loop.cancel(cancelled))
        let spent = loop.schedule(at: past, handler, tag: 2)
        #expect(!loop.cancel(cancelled))
        loop.turnOnce()
        #expect(fired == [2])
        _ = loop.schedule(at: past, handler, tag: 3)
        #expect(!loop.cancel(spent))
        loop.turnOnce()
        #expect(fired == [2, 3])
    }

    @Test("a timer's handler may cancel a timer that is due in the same turn, and schedule others")
    func cancelInside() throws {
        let loop = try EventLoop()
        var fired: [UInt64] = []
        var victim: TimerToken?
        let innocent = Probe(timer: { fired.append($0) })
        let killer = Probe(timer: { tag in
            fired.append(tag)
            if let victim { #expect(loop.cancel(victim)) }
            _ = loop.schedule(at: LoopInstant(nanoseconds: 1), innocent, tag: 3)
        })
        _ = loop.schedule(at: LoopInstant(nanoseconds: 1), killer, tag: 1)
        victim = loop.schedule(at: LoopInstant(nanoseconds: 2), innocent, tag: 2)
        loop.turnOnce()
        loop.turnOnce()
        #expect(fired == [1, 3])
    }

    @Test("a timer that schedules the present again and again does not starve descriptors")
    func noStarvation() throws {
        let loop = try EventLoop()
        let (reader, writer) = socketPair()
        var isOver = false
        let reading = Probe { fd, _ in
            isOver = true
            loop.forget(fd)
        }
        var again: Probe?
        again = Probe(timer: { _ in
            if !isOver, let again { _ = loop.schedule(at: loop.now, again) }
        })
        if let again { _ = loop.schedule(at: loop.now, again) }
        loop.watch(reader, for: .read, handler: reading)
        loop.turnOnce()
        #expect(!isOver)
        send("x", to: writer)
        loop.turnOnce()
        #expect(isOver)
        again = nil
        close(reader)
        close(writer)
    }

    @Test("the loop releases a handler when its timer has fired or was cancelled")
    func release() throws {
        let loop = try EventLoop()
        var handler: Probe? = Probe(timer: { _ in })
        weak let observer = handler
        if let handler {
            let token = loop.schedule(at: .never, handler)
            _ = loop.schedule(at: LoopInstant(nanoseconds: 1), handler)
            loop.cancel(token)
        }
        handler = nil
        #expect(observer != nil)
        loop.turnOnce()
        #expect(observer == nil)
    }
}

@Suite("Instants")
struct InstantTests {
    @Test("arithmetic on LoopInstant saturates")
    func saturation() {
        let late = LoopInstant(nanoseconds: .max - 1)
        #expect(late.advanced(byMilliseconds: 1) == .never)
        #expect(late.advanced(byMilliseconds: .max) == .never)
        #expect(late + .seconds(Int64.max) == .never)
        #expect(late.advanced(byMilliseconds: -1) == late)
        #expect(late + .seconds(-1) == late)
        #expect(LoopInstant(nanoseconds: 0) - late == .nanoseconds(-Int64.max))
        #expect(LoopInstant(nanoseconds: 7) + .nanoseconds(5) == LoopInstant(nanoseconds: 12))
        #expect(LoopInstant(nanoseconds: 0) + .milliseconds(2500) == LoopInstant(nanoseconds: 2_500_000_000))
    }

    @Test("the wait until a LoopInstant is rounded up to milliseconds")
    func rounding() {
        let start = LoopInstant(nanoseconds: 1_000)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_000)) == 0)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 0)) == 0)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_001)) == 1)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_001_000)) == 1)
        #expect(start.milliseconds(until: LoopInstant(nanoseconds: 1_001_001)) == 2)
    }
}

@Suite("Delays in the loop's unit")
struct DelayTests {
    @Test(
        "a LoopDelay leads to the same instant as its Duration",
        arguments: [
            Duration.zero, .nanoseconds(1), .milliseconds(1500), .seconds(300), .seconds(-5), .seconds(Int64.max),
        ])
    func same(duration: Duration) {
        let instant = LoopInstant(nanoseconds: 12_345)
        #expect(instant + LoopDelay(duration) == instant + duration)
    }
}

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

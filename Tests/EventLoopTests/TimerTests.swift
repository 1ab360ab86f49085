// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import Testing

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

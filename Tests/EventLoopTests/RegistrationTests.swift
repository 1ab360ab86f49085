// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import Testing

@Suite("Registrations with the kernel")
struct RegistrationTests {
    /// A loop on the test's own thread, driven by `turn`.
    private final class Bench {
        let loop: EventLoop
        let (reader, writer) = socketPair()
        private(set) var told: [Readiness] = []
        private(set) var handler = Probe { _, _ in }

        init() throws {
            loop = try EventLoop()
            handler = Probe { [unowned self] fd, events in
                told.append(events)
                drain(fd)
            }
        }

        deinit {
            close(reader)
            close(writer)
        }

        /// Turns the loop until all events so far have been delivered.
        func turn() {
            loop.turnOnce()
        }
    }

    @Test("suspending and watching again costs no system call while nothing arrives")
    func lazily() throws {
        let bench = try Bench()
        bench.loop.watch(bench.reader, for: .read, handler: bench.handler)
        for _ in 0..<1000 {
            bench.loop.suspend(bench.reader)
            bench.loop.watch(bench.reader, for: .read, handler: bench.handler)
        }
        #expect(bench.loop.registrations == 1)
        send("x", to: bench.writer)
        bench.turn()
        #expect(bench.told == [.readable])
    }

    @Test("an event at a suspended descriptor ends its registration and does not spin the loop")
    func relaxedAndReady() throws {
        let bench = try Bench()
        bench.loop.watch(bench.reader, for: .read, handler: bench.handler)
        bench.loop.suspend(bench.reader)
        send("x", to: bench.writer)
        bench.turn()
        #expect(bench.told.isEmpty)
        #expect(bench.loop.registrations == 2)
        bench.turn()
        #expect(bench.loop.registrations == 2)
        bench.loop.watch(bench.reader, for: .read, handler: bench.handler)
        bench.turn()
        #expect(bench.told == [.readable])
        #expect(bench.loop.registrations == 3)
    }

    @Test("a peer that closes while the descriptor is suspended does not spin the loop")
    func relaxedAndHungUp() throws {
        let bench = try Bench()
        bench.loop.watch(bench.reader, for: .read, handler: bench.handler)
        bench.loop.suspend(bench.reader)
        shutdown(bench.writer, Int32(SHUT_RDWR))
        bench.turn()
        bench.turn()
        #expect(bench.told.isEmpty)
        #expect(bench.loop.registrations == 2)
    }

    @Test("interest in writing is dropped at once")
    func writeIsEager() throws {
        let bench = try Bench()
        bench.loop.watch(bench.reader, for: [.read, .write], handler: bench.handler)
        bench.turn()
        #expect(bench.told == [.writable])
        bench.loop.watch(bench.reader, for: .read, handler: bench.handler)
        #expect(bench.loop.registrations == 2)
        bench.turn()
        #expect(bench.told == [.writable])
        bench.loop.watch(bench.reader, for: .write, handler: bench.handler)
        bench.loop.suspend(bench.reader)
        #expect(bench.loop.registrations == 4)
        bench.turn()
        #expect(bench.told == [.writable])
    }

    @Test("of two interests, the dropped one is unregistered at its event, and the other is still delivered")
    func partlyRelaxed() throws {
        let bench = try Bench()
        bench.loop.watch(bench.reader, for: [.read, .peerClosed], handler: bench.handler)
        bench.loop.watch(bench.reader, for: .peerClosed, handler: bench.handler)
        #expect(bench.loop.registrations == 1)
        send("x", to: bench.writer)
        bench.turn()
        #expect(bench.told.isEmpty)
        #expect(bench.loop.registrations == 2)
        shutdown(bench.writer, Int32(SHUT_WR))
        bench.turn()
        #expect(bench.told == [.peerClosed])
    }

    @Test("an event for a former use of a descriptor number does not reach its next owner")
    func reuse() throws {
        let loop = try EventLoop()
        let (first, firstPeer) = socketPair()
        let (second, secondPeer) = socketPair()
        let (fresh, freshPeer) = socketPair()
        var seen: [String] = []
        let next = Probe { fd, _ in
            seen.append("next")
            drain(fd)
        }
        // Both are ready in the same batch; the first to run closes the other, whose number is then reused.
        let former = Probe { [unowned loop] fd, _ in
            seen.append("former")
            drain(fd)
            let other = fd == first ? second : first
            loop.forget(other)
            dup2(fresh, other)
            loop.watch(other, for: .read, handler: next)
        }
        loop.watch(first, for: .read, handler: former)
        loop.watch(second, for: .read, handler: former)
        send("x", to: firstPeer)
        send("x", to: secondPeer)
        loop.turnOnce()
        #expect(seen == ["former"])
        send("x", to: freshPeer)
        loop.turnOnce()
        #expect(seen == ["former", "next"])
        for fd in [first, firstPeer, second, secondPeer, fresh, freshPeer] { close(fd) }
    }

    @Test("a handler may forget, unwatch and close its own descriptor")
    func withinTheHandler() throws {
        let loop = try EventLoop()
        let (reader, writer) = socketPair()
        var count = 0
        let handler = Probe { fd, _ in
            count += 1
            loop.unwatch(fd)
        }
        loop.watch(reader, for: .read, handler: handler)
        send("x", to: writer)
        loop.turnOnce()
        loop.turnOnce()
        #expect(count == 1)
        let last = Probe { fd, _ in
            count += 10
            loop.forget(fd)
            close(fd)
        }
        loop.watch(reader, for: .read, handler: last)
        loop.turnOnce()
        loop.turnOnce()
        #expect(count == 11)
        close(writer)
    }

    @Test("the loop releases a handler when its descriptor is forgotten")
    func release() throws {
        let loop = try EventLoop()
        let (reader, writer) = socketPair()
        var handler: Probe? = Probe { _, _ in }
        weak let observer = handler
        if let handler { loop.watch(reader, for: .read, handler: handler) }
        handler = nil
        #expect(observer != nil)
        loop.forget(reader)
        #expect(observer == nil)
        close(reader)
        close(writer)
    }

    @Test("a handler may call the loop in its deinit")
    func callFromDeinit() throws {
        let loop = try EventLoop()
        let (reader, writer) = socketPair()
        let probe = Probe { _, _ in }
        final class Parting: ReadinessHandler, TimerHandler {
            let action: () -> Void
            init(_ action: @escaping () -> Void) { self.action = action }
            deinit { action() }
            func ready(_ fd: Int32, _ events: Readiness) {}
            func timerFired(tag: UInt64) {}
        }
        var count = 0
        let token = loop.schedule(at: .never, Probe(timer: { _ in }))
        let part = {
            count += 1
            loop.cancel(token)
            loop.watch(writer, for: .read, handler: probe)
            loop.forget(writer)
        }
        loop.watch(reader, for: .read, handler: Parting(part))
        loop.watch(reader, for: .read, handler: Parting(part))
        loop.forget(reader)
        loop.watch(reader, for: .read, handler: Parting(part))
        loop.unwatch(reader)
        loop.cancel(loop.schedule(at: .never, Parting(part)))
        #expect(count == 4)
        close(reader)
        close(writer)
    }

    @Test("a descriptor that the kernel refuses to watch is reported as an error, once")
    func refused() throws {
        let loop = try EventLoop()
        let file = unsafe open("/proc/self/cmdline", O_RDONLY)
        var told: [Readiness] = []
        let handler = Probe { fd, events in
            told.append(events)
            loop.forget(fd)
            close(fd)
        }
        loop.watch(file, for: .read, handler: handler)
        loop.turnOnce()
        loop.turnOnce()
        #expect(told == [[.error, .refused]])
    }

    @Test("a descriptor that was closed without forget can be watched again")
    func staleRecord() throws {
        let bench = try Bench()
        let (other, otherPeer) = socketPair()
        bench.loop.watch(other, for: .write, handler: bench.handler)
        dup2(bench.reader, other)
        bench.loop.watch(other, for: .read, handler: bench.handler)
        send("x", to: bench.writer)
        bench.turn()
        #expect(bench.told == [.readable])
        close(other)
        close(otherPeer)
    }
}

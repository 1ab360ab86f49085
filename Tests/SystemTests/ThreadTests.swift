// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Synchronization
import Testing

@testable import System

@Suite("Threads")
struct ThreadTests {
    @Test("a thread runs its body once, under its name, with all signals blocked")
    func body() throws {
        let seen = Promise<(name: String, isBlocked: Bool)>()
        let thread = try Thread(named: "a-rather-long-name") {
            var mask = sigset_t()
            unsafe pthread_sigmask(SIG_SETMASK, nil, &mask)
            let isBlocked = unsafe sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGPIPE) == 1
            let name = (try? FileSystem.contents(of: "/proc/thread-self/comm", limit: 64)) ?? []
            seen.fulfill((String(decoding: name, as: UTF8.self), isBlocked))
        }
        thread.join()
        let (name, isBlocked) = seen.wait()
        #expect(name == "a-rather-long-n\n" && isBlocked)
    }

    @Test("a start leaves the signals of the starting thread as they were")
    func mask() throws {
        var before = sigset_t()
        unsafe pthread_sigmask(SIG_SETMASK, nil, &before)
        try Thread {}.join()
        var after = sigset_t()
        unsafe pthread_sigmask(SIG_SETMASK, nil, &after)
        for number in 1...31 as ClosedRange<Int32> {
            let (was, isNow) = unsafe (sigismember(&before, number), sigismember(&after, number))
            #expect(was == isNow)
        }
    }

    @Test("a thread that cannot be made throws, says where to look, and its body is neither run nor kept")
    func failure() {
        final class Witness: Sendable {}
        weak var kept: Witness?
        let hasRun = Atomic(false)
        do throws(ThreadError) {
            let witness = Witness()
            kept = witness
            try Thread(named: nil, stackSize: 1 << 47) {
                hasRun.store(true, ordering: .relaxed)
                withExtendedLifetime(witness) {}
            }.join()
            Issue.record("there was a thread")
        } catch {
            #expect(error.code == EAGAIN)
            #expect(error.description.contains("TasksMax="))
        }
        #expect(kept == nil && !hasRun.load(ordering: .relaxed))
    }

    @Test("a body on its own thread returns its value to the task, and the failure to start a thread is thrown")
    func task() async throws {
        let own = try await onOwnThread { pthread_self() }
        #expect(own != pthread_self())
        await #expect(throws: ThreadError(code: EAGAIN)) {
            try await onOwnThread({ (_) throws(ThreadError) in throw ThreadError(code: EAGAIN) }) { 1 }
        }
    }
}

@Suite("Waits of threads")
struct WaitTests {
    @Test("a signal before the wait lets one wait pass, and no second one")
    func signalBefore() {
        let semaphore = ThreadSemaphore()
        semaphore.signal()
        #expect(semaphore.wait(within: .seconds(60)))
        #expect(!semaphore.wait(within: .zero))
    }

    @Test("each signal lets one thread pass")
    func signals() throws {
        let (go, passed) = (ThreadSemaphore(), ThreadSemaphore())
        let threads = try (0..<8).map { _ in
            try Thread {
                go.wait()
                passed.signal()
            }
        }
        for _ in 0..<7 { go.signal() }
        for _ in 0..<7 { #expect(passed.wait(within: .seconds(60))) }
        #expect(!passed.wait(within: .milliseconds(1)))
        go.signal()
        for thread in threads { thread.join() }
        #expect(passed.wait(within: .zero))
    }

    @Test(
        "a wait whose deadline passes says so, of a negative limit as well",
        arguments: [Duration.milliseconds(1), .nanoseconds(1), .zero, .seconds(-1), .seconds(Int64.min)])
    func deadline(limit: Duration) {
        #expect(!ThreadSemaphore().wait(within: limit))
        #expect(!CountDownLatch().wait(within: limit))
        #expect(Promise<Int>().wait(within: limit) == nil)
    }

    @Test(
        "a wait without end, as far as its limit goes, ends with the event",
        arguments: [Duration.seconds(Int64.max), .seconds(60)])
    func longLimit(limit: Duration) throws {
        let latch = CountDownLatch()
        let thread = try Thread { latch.countDown() }
        #expect(latch.wait(within: limit))
        thread.join()
    }

    @Test("a latch opens with the last of its events, for all waiters and permanently")
    func latch() throws {
        let latch = CountDownLatch(3)
        let passed = ThreadSemaphore()
        let threads = try (0..<4).map { _ in
            try Thread { if latch.wait(within: .seconds(60)) { passed.signal() } }
        }
        latch.countDown()
        latch.countDown()
        #expect(!latch.wait(within: .zero))
        latch.countDown()
        for thread in threads { thread.join() }
        for _ in 0..<4 { #expect(passed.wait(within: .zero)) }
        latch.countDown()
        #expect(latch.wait(within: .zero))
    }

    @Test("a latch of no event is open")
    func openLatch() {
        #expect(CountDownLatch(0).wait(within: .zero))
    }

    @Test("a promise has its first value for all who wait, before and after")
    func promise() throws {
        let promise = Promise<Int>()
        let seen = Promise<Int>()
        let thread = try Thread { seen.fulfill(promise.wait()) }
        promise.fulfill(1)
        promise.fulfill(2)
        thread.join()
        #expect(seen.wait() == 1 && promise.wait() == 1 && promise.wait(within: .zero) == 1)
    }

    @Test("a promise of an optional may be fulfilled with nothing")
    func nothing() {
        let promise = Promise<Int?>()
        promise.fulfill(nil)
        promise.fulfill(1)
        #expect(promise.wait() == nil)
    }

    @Test("a change that wakes a thread for nothing leaves it waiting for its condition")
    func condition() throws {
        let monitor = Monitor(0)
        let seen = Promise<Int>()
        let thread = try Thread { seen.fulfill(monitor.wait { $0 >= 3 ? $0 : nil }) }
        for _ in 0..<2 { monitor.update { $0 += 1 } }
        #expect(seen.wait(within: .zero) == nil)
        monitor.update { $0 += 1 }
        thread.join()
        #expect(seen.wait() == 3)
    }
}

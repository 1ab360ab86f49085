// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Synchronization
import Testing

@testable import Basics

/// A number that tasks count up.
private final class Count: Sendable {
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .relaxed) }

    @discardableResult
    func add(_ difference: Int) -> Int { number.wrappingAdd(difference, ordering: .relaxed).newValue }
}

/// Events of tasks, in order.
private final class Record: Sendable {
    private let numbers = Mutex<[Int]>([])

    var all: [Int] { numbers.withLock { $0 } }

    func append(_ number: Int) { numbers.withLock { $0.append(number) } }
}

@Suite("Waiting tasks")
struct AsyncMutexTests {
    private struct Cancelled: Error {}

    /// Waits until `count` tasks are in the queue of `mutex`.
    private func untilQueued(_ count: Int, at mutex: AsyncMutex) async {
        while mutex.queueLength < count { await Task.yield() }
    }

    @Test("tasks hold a mutex one at a time")
    func exclusion() async throws {
        let mutex = AsyncMutex()
        let inside = Count()
        let total = Count()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in
                        #expect(inside.add(1) == 1)
                        await Task.yield()
                        inside.add(-1)
                        total.add(1)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(total.value == 50)
    }

    @Test("tasks get a mutex in the order in which they came")
    func order() async throws {
        let mutex = AsyncMutex()
        let end = OneShot<Void>()
        let order = Record()
        try await withThrowingTaskGroup(of: Void.self) { group in
            let isHeld = OneShot<Void>()
            group.addTask {
                try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in
                    isHeld.finish(())
                    await end.wait()
                }
            }
            await isHeld.wait()
            for number in 0..<5 {
                group.addTask {
                    try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in
                        order.append(number)
                    }
                }
                await untilQueued(number + 1, at: mutex)
            }
            end.finish(())
            try await group.waitForAll()
        }
        #expect(order.all == [0, 1, 2, 3, 4])
    }

    @Test("a task that is cancelled in the queue throws, and the next one gets its turn")
    func cancelledInQueue() async throws {
        let mutex = AsyncMutex()
        let isHeld = OneShot<Void>()
        let end = OneShot<Void>()
        let holder = Task {
            try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in
                isHeld.finish(())
                await end.wait()
            }
        }
        await isHeld.wait()
        let waiter = Task {
            try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in Issue.record("it ran") }
        }
        await untilQueued(1, at: mutex)
        waiter.cancel()
        await #expect(throws: Cancelled.self) { try await waiter.value }
        end.finish(())
        try await holder.value
        let value = try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in 7 }
        #expect(value == 7)
    }

    @Test("a task that is cancelled while it holds a mutex lets the next one in, though its body goes on")
    func cancelledHolder() async throws {
        let mutex = AsyncMutex()
        let isHeld = OneShot<Void>()
        let end = OneShot<Void>()
        let holder = Task {
            try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in
                isHeld.finish(())
                await end.wait()
            }
        }
        await isHeld.wait()
        holder.cancel()
        let value = try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in 7 }
        #expect(value == 7)
        end.finish(())
        try await holder.value
    }

    @Test("a task that was cancelled before gets no turn, even of a free mutex")
    func cancelledBefore() async {
        let mutex = AsyncMutex()
        let go = OneShot<Void>()
        let task = Task {
            await go.wait()
            _ = try await mutex.withLock(orThrow: Cancelled()) { () async throws(Cancelled) in Issue.record("it ran") }
        }
        task.cancel()
        go.finish(())
        await #expect(throws: Cancelled.self) { try await task.value }
    }

    @Test("an error of the body is thrown, and the mutex is free again")
    func failure() async throws {
        struct Failure: Error {}
        let mutex = AsyncMutex()
        await #expect(throws: Failure.self) {
            try await mutex.withLock(orThrow: Failure()) { () async throws(Failure) -> Void in throw Failure() }
        }
        let value = try await mutex.withLock(orThrow: Failure()) { () async throws(Failure) in 1 }
        #expect(value == 1)
    }
}

@Suite("One-shot outcomes")
struct OneShotTests {
    @Test("an outcome that was set before the wait is there at once")
    func before() async {
        let oneShot = OneShot<Int>()
        oneShot.finish(1)
        oneShot.finish(2)
        #expect(await oneShot.wait() == 1)
    }

    @Test("an outcome that is set after the wait began ends it, and a later one changes nothing")
    func after() async {
        let oneShot = OneShot<Int>()
        async let outcome = oneShot.wait()
        await Task.yield()
        oneShot.finish(1)
        #expect(await outcome == 1)
        oneShot.finish(2)
    }

    @Test("if many tasks set an outcome at once, one of them succeeds")
    func many() async {
        for _ in 0..<100 {
            let oneShot = OneShot<Int>()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 { group.addTask { oneShot.finish(number) } }
                #expect((0..<8).contains(await oneShot.wait()))
            }
        }
    }
}

@Suite("Completions")
struct CompletionGroupTests {
    @Test("the last of several completions calls back once, and none after it")
    func last() async {
        let calls = Count()
        let group = CompletionGroup(of: 100) { calls.add(1) }
        for _ in 0..<99 { group.completeOne() }
        #expect(calls.value == 0)
        group.completeOne()
        group.completeOne()
        #expect(calls.value == 1)
    }

    @Test("completions of many threads at once call back once")
    func many() async {
        let calls = Count()
        let group = CompletionGroup(of: 64) { calls.add(1) }
        await withTaskGroup(of: Void.self) { tasks in
            for _ in 0..<64 { tasks.addTask { group.completeOne() } }
        }
        #expect(calls.value == 1)
    }
}

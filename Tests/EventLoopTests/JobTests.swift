// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("Jobs")
struct JobTests {
    @Test("jobs from another thread run on the loop's thread, in order")
    func order() async throws {
        let thread = try EventLoopThread(name: "jobs") { _ in }
        let loop = thread.loop
        let seen = Locked<[Int]>([])
        await withCheckedContinuation { done in
            for number in 0..<10_000 {
                loop.execute {
                    seen.change { $0.append(loop.isCurrent ? number : -1) }
                    if number == 9_999 { done.resume() }
                }
            }
        }
        #expect(seen.value == Array(0..<10_000))
        stop(thread)
    }

    @Test("a job enqueued on the loop's thread runs after the current one")
    func notWithinTheCall() async throws {
        let thread = try EventLoopThread(name: "jobs") { _ in }
        let loop = thread.loop
        let words = Locked<[String]>([])
        await withCheckedContinuation { done in
            loop.execute {
                loop.execute {
                    words.change { $0.append("inner") }
                    done.resume()
                }
                words.change { $0.append("outer") }
            }
        }
        #expect(words.value == ["outer", "inner"])
        stop(thread)
    }

    @Test("jobs from many threads under load all arrive, each once")
    func load() async throws {
        let thread = try EventLoopThread(name: "jobs") { _ in }
        let loop = thread.loop
        let total = Locked(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<2_000 {
                        await withCheckedContinuation { done in
                            loop.execute {
                                total.change { $0 += 1 }
                                done.resume()
                            }
                        }
                    }
                }
            }
        }
        #expect(total.value == 16_000)
        stop(thread)
    }

    @Test("jobs that create jobs endlessly do not starve descriptors and timers")
    func noStarvation() async throws {
        let thread = try EventLoopThread(name: "jobs") { _ in }
        let loop = thread.loop
        let isOver = Atomic<Bool>(false)
        @Sendable func again() {
            guard !isOver.load(ordering: .relaxed) else { return }
            loop.execute { again() }
        }
        await withCheckedContinuation { done in
            loop.execute {
                again()
                let (reader, writer) = socketPair()
                let probe = Probe { fd, _ in
                    loop.forget(fd)
                    close(reader)
                    close(writer)
                    isOver.store(true, ordering: .relaxed)
                    done.resume()
                }
                loop.watch(reader, for: .read, handler: probe)
                send("x", to: writer)
            }
        }
        stop(thread)
    }

    @Test("jobs enqueued before stop are still run, and stop ends the thread")
    func stopping() throws {
        let thread = try EventLoopThread(name: "jobs") { _ in }
        let ran = Locked(0)
        for _ in 0..<500 { thread.loop.execute { ran.change { $0 += 1 } } }
        stop(thread)
        #expect(ran.value == 500)
        #expect(!thread.loop.isCurrent)
    }

    @Test("a stopped loop releases its handlers, timers and hooks")
    func releaseAtStop() throws {
        final class Holder: ReadinessHandler, TimerHandler, WaitHook {
            let loop: EventLoop
            let gone: Locked<Int>
            init(_ loop: EventLoop, _ gone: Locked<Int>) {
                self.loop = loop
                self.gone = gone
            }
            deinit { gone.change { $0 += 1 } }
            func ready(_ fd: Int32, _ events: Readiness) {}
            func timerFired(tag: UInt64) {}
            func beforeWait(now: LoopInstant) -> WaitAdvice { WaitAdvice(didWork: false) }
        }
        let gone = Locked(0)
        let thread = try EventLoopThread(name: "jobs") { loop in
            let (reader, _) = socketPair()
            loop.watch(reader, for: .read, handler: Holder(loop, gone))
            _ = loop.schedule(at: .never, Holder(loop, gone))
            loop.add(Holder(loop, gone))
        }
        stop(thread)
        #expect(gone.value == 3)
    }

    @Test("a ping advances the time of the last turn")
    func heartbeat() async throws {
        let clock = ManualLoopClock()
        let thread = try EventLoopThread(name: "jobs", clock: clock) { _ in }
        let loop = thread.loop
        await clock.settle()
        #expect(loop.lastTurn == clock.now)
        await on(loop) {
            // During its turn the loop does not return from a wait.
            clock.advance(by: .seconds(5))
            #expect(clock.now - loop.lastTurn == .seconds(5))
        }
        loop.ping()
        await clock.settle()
        #expect(loop.lastTurn == clock.now)
        stop(thread)
    }

    @Test("the loop's thread has its name, truncated to 15 bytes, and runs the set-up first")
    func setUp() async throws {
        let name = Locked("")
        let thread = try EventLoopThread(name: "a-rather-long-name") { loop in
            precondition(loop.isCurrent)
            name.change { $0 = threadName() }
        }
        stop(thread)
        #expect(name.value == "a-rather-long-n")
    }
}

/// Actor whose executor is a loop.
private actor Resident {
    private let loop: EventLoop
    private var count = 0
    private(set) var strayed = 0

    init(on loop: EventLoop) { self.loop = loop }

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    func step() -> Int {
        count += 1
        if !loop.isCurrent { strayed += 1 }
        return count
    }

    func stepWithWaits() async {
        _ = step()
        await resumedElsewhere()
        _ = step()
        await Task.yield()
        _ = step()
    }

    nonisolated func peek() -> Int {
        assumeIsolated { $0.count }
    }
}

/// Suspends until a thread resumes it that is neither a loop's nor of the pool.
private func resumedElsewhere() async {
    await withCheckedContinuation { continuation in
        do {
            let thread = try EventLoopThread(name: "elsewhere") { loop in
                continuation.resume()
                loop.stop()
            }
            thread.detach()
        } catch {
            Issue.record(error)
            continuation.resume()
        }
    }
}

@Suite("Executor")
struct ExecutorTests {
    @Test("a task that prefers the loop runs on its thread, even after another thread resumed it")
    func preference() async throws {
        let thread = try EventLoopThread(name: "executor") { _ in }
        let loop = thread.loop
        let task = Task(executorPreference: loop) {
            var places = [loop.isCurrent]
            await Task.yield()
            places.append(loop.isCurrent)
            await resumedElsewhere()
            places.append(loop.isCurrent)
            await Task.detached {}.value
            places.append(loop.isCurrent)
            async let child = loop.isCurrent
            places.append(await child)
            return places
        }
        #expect(await task.value == [true, true, true, true, true])
        stop(thread)
    }

    @Test("an actor on the loop runs on the loop's thread, whichever thread calls it")
    func actorOnLoop() async throws {
        let thread = try EventLoopThread(name: "executor") { _ in }
        let resident = Resident(on: thread.loop)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { await resident.stepWithWaits() } }
        }
        #expect(await resident.step() == 61)
        #expect(await resident.strayed == 0)
        stop(thread)
    }

    @Test("two loops call each other's actors under load and nothing is lost")
    func pingPong() async throws {
        let threads = try (0..<2).map { try EventLoopThread(name: "executor-\($0)") { _ in } }
        let residents = threads.map { Resident(on: $0.loop) }
        await withTaskGroup(of: Void.self) { group in
            for start in 0..<32 {
                group.addTask(executorPreference: threads[start % 2].loop) {
                    for step in 0..<500 { _ = await residents[(start + step) % 2].step() }
                }
            }
        }
        for resident in residents {
            #expect(await resident.step() == 8001)
            #expect(await resident.strayed == 0)
        }
        threads.forEach(stop)
    }

    @Test("code on the loop may enter an actor of the loop without awaiting")
    func assumed() async throws {
        let thread = try EventLoopThread(name: "executor") { _ in }
        let resident = Resident(on: thread.loop)
        _ = await resident.step()
        #expect(await on(thread.loop) { resident.peek() } == 1)
        stop(thread)
    }

    @Test("entering an actor of a loop from another thread stops the program")
    func strayed() async {
        await #expect(processExitsWith: .failure) {
            let thread = try EventLoopThread(name: "executor") { _ in }
            _ = Resident(on: thread.loop).peek()
        }
    }
}

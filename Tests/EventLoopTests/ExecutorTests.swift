// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@testable import EventLoop

@Suite("LoopBound")
struct LoopBoundTests {
    private final class Plain {
        var number = 1
        let onEnd: () -> Void
        init(onEnd: @escaping () -> Void) { self.onEnd = onEnd }
        deinit { onEnd() }
    }

    @Test("a non-Sendable value in a LoopBound travels, comes back, and is released on its loop")
    func travel() async throws {
        let thread = try EventLoopThread(name: "bound") { _ in }
        let loop = thread.loop
        let released = Locked<[Bool]>([])
        var bound: LoopBound<Plain>? = await on(loop) {
            LoopBound(Plain(onEnd: { released.change { $0.append(loop.isCurrent) } }), to: loop)
        }
        let number = await withCheckedContinuation { done in
            loop.execute { [bound] in
                bound?.value.number += 1
                done.resume(returning: bound?.value.number)
            }
        }
        #expect(number == 2)
        // The closure's own reference has to be released first.
        await on(loop) {}
        bound = nil
        await on(loop) {}
        #expect(released.value == [true])
        stop(thread)
    }

    @Test("accessing a LoopBound's value on another thread stops the program")
    func elsewhere() async {
        await #expect(processExitsWith: .failure) {
            let thread = try EventLoopThread(name: "bound") { _ in }
            // Passed through a lock: thread sanitizer sometimes reports a value from a continuation as a race.
            let made = Locked<LoopBound<Int>?>(nil)
            let isMade = Signal()
            thread.loop.execute {
                made.change { $0 = LoopBound(1, to: thread.loop) }
                isMade.set()
            }
            await isMade.wait()
            made.value?.value += 1
        }
    }
}

@Suite("Hooks before the wait")
struct HookTests {
    @Test("a wait hook that did work is called again before the loop waits")
    func again() throws {
        let loop = try EventLoop()
        var work = 2
        let hook = Script { _ in
            work -= 1
            return WaitAdvice(didWork: work >= 0)
        }
        loop.add(hook)
        loop.turnOnce()
        #expect(hook.calls == 3)
        loop.remove(hook)
        loop.turnOnce()
        #expect(hook.calls == 3)
    }

    @Test("a wait hook that always reports work does not starve descriptors")
    func endless() throws {
        let loop = try EventLoop()
        let hook = Script { _ in WaitAdvice(didWork: true) }
        loop.add(hook)
        loop.turnOnce()
        #expect(hook.calls == 4)
    }

    @Test("a wait hook can remove itself, and the hooks after it are called in the same round")
    func removesItself() throws {
        let loop = try EventLoop()
        var calls: [String] = []
        var first: Script?
        first = Script { [unowned loop] _ in
            calls.append("first")
            if let hook = first { loop.remove(hook) }
            first = nil
            return WaitAdvice(didWork: false)
        }
        if let first { loop.add(first) }
        for name in ["second", "third"] {
            loop.add(
                Script { _ in
                    calls.append(name)
                    return WaitAdvice(didWork: false)
                })
        }
        weak let gone = first
        loop.turnOnce()
        #expect(calls == ["first", "second", "third"])
        #expect(gone == nil)
        loop.turnOnce()
        #expect(calls == ["first", "second", "third", "second", "third"])
    }

    @Test("a wait hook can remove others, before and after it")
    func removesOthers() throws {
        let loop = try EventLoop()
        var calls: [String] = []
        let quiet = WaitAdvice(didWork: false)
        let before = Script { _ in
            calls.append("before")
            return quiet
        }
        let after = Script { _ in
            calls.append("after")
            return quiet
        }
        loop.add(before)
        loop.add(
            Script { [unowned loop] _ in
                calls.append("remover")
                loop.remove(before)
                loop.remove(after)
                return quiet
            })
        loop.add(after)
        loop.add(
            Script { _ in
                calls.append("last")
                return quiet
            })
        loop.turnOnce()
        #expect(calls == ["before", "remover", "last"])
    }

    @Test("a job enqueued by a wait hook runs before the wait")
    func jobFromHook() throws {
        let loop = try EventLoop()
        let count = Locked(0)
        let hook = Script { [unowned loop] _ in
            if count.value == 0 { loop.execute { count.change { $0 += 1 } } }
            return WaitAdvice(didWork: false)
        }
        loop.add(hook)
        loop.turnOnce()
        #expect(count.value == 1)
    }
}

@Suite("The load of a loop")
struct LoopActivityTests {
    private let second: UInt64 = 1_000_000_000

    private func at(_ seconds: Double) -> LoopInstant { LoopInstant(nanoseconds: UInt64(seconds * 1e9)) }

    @Test("LoopActivity adds up turns without the waits between them")
    func busy() {
        var activity = LoopActivity()
        activity.turned(from: at(100), to: at(101))
        activity.turned(from: at(105), to: at(107))
        activity.turned(from: at(109), to: at(108))
        #expect(activity.busy == 3 * second)
        #expect(activity.turns == 3)
    }

    @Test("LoopActivity reports the longest turn for 30 to 60 seconds, however often it is read")
    func longest() {
        var activity = LoopActivity()
        activity.turned(from: at(100), to: at(102))
        for moment in stride(from: 103.0, to: 132, by: 5) {
            #expect(activity.longestTurn(at: at(moment)) == 2 * second)
            activity.turned(from: at(moment), to: at(moment + 0.5))
        }
        activity.turned(from: at(133), to: at(134))
        #expect(activity.longestTurn(at: at(134)) == 2 * second)
        activity.turned(from: at(165), to: at(165.5))
        #expect(activity.longestTurn(at: at(166)) == second)
        #expect(activity.longestTurn(at: at(194)) == second)
        // Idle since then: there was no turn.
        #expect(activity.longestTurn(at: at(250)) == 0)
    }
}

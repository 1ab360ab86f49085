// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

/// A hook that gives scripted advice and counts its calls.
private final class Script: WaitHook {
    private(set) var calls = 0
    var advice: (LoopInstant) -> WaitAdvice

    init(_ advice: @escaping (LoopInstant) -> WaitAdvice) { self.advice = advice }

    func beforeWait(now: LoopInstant) -> WaitAdvice {
        calls += 1
        return advice(now)
    }
}

@Suite("Hooks before the wait")
struct HookTests {
    @Test("a hook is called again at its deadline, without a timer")
    func deadline() async throws {
        let thread = try EventLoopThread(name: "hooks") { _ in }
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

    @Test("a hook that did work is asked again before the loop waits")
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

    @Test("a hook that never finds an end does not keep descriptors from their turn")
    func endless() throws {
        let loop = try EventLoop()
        let hook = Script { _ in WaitAdvice(didWork: true) }
        loop.add(hook)
        loop.turnOnce()
        #expect(hook.calls == 4)
    }

    @Test("a job that a hook makes runs before the wait")
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

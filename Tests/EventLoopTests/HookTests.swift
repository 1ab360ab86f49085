// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

@Suite("Hooks before the wait")
struct HookTests {
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

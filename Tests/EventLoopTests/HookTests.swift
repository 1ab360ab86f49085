// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Testing

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

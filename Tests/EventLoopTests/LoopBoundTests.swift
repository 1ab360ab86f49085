// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import TestSupport
import Testing

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
        // The closure's own reference has to go first.
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
            // By way of a lock: what a continuation hands over, thread sanitizer now and then takes for a race.
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

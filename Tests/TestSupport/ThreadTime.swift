// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// Returns the processor time of this thread, in nanoseconds.
package func threadTime() -> Int {
    var time = timespec()
    unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Runs `body`, which may block, on a thread of its own.
package func inBackground(_ body: @escaping @Sendable () -> Void) {
    do throws(ThreadError) {
        try startThread(body)
    } catch {
        // No thread to be had: better late on the pool than never.
        Task { body() }
    }
}

/// Returns true if `work` on eight times as many items takes less than twenty times as long, which quadratic time (64 times) exceeds
/// by far.
///
/// `work` gets the number of items. Processor time of this thread counts, the best of three measurements.
package func growsLinearly(from small: Int, _ work: (_ count: Int) -> Void) -> Bool {
    func time(_ count: Int) -> Int {
        (0..<3).map { _ in
            let before = threadTime()
            work(count)
            return threadTime() - before
        }.min() ?? 0
    }
    // Others on the machine may disturb one measurement, but hardly three.
    return (0..<3).contains { _ in time(8 * small) < 20 * time(small) + 300_000 }
}

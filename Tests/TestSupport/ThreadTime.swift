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

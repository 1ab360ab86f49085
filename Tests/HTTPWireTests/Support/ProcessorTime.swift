// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// The nanoseconds that this thread has had of a processor: other tests run beside this one.
func processorTime() -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

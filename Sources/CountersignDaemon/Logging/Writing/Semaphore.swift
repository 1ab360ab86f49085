// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A counting semaphore of the system: the one thing that a thread can wait for without a loop.
@safe
final class Semaphore: @unchecked Sendable {
    // sem_t may be used by any thread, but must not move.
    private let semaphore: UnsafeMutablePointer<sem_t>

    init() {
        unsafe semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        unsafe sem_init(semaphore, 0, 0)
    }

    deinit {
        unsafe sem_destroy(semaphore)
        unsafe semaphore.deallocate()
    }

    /// Lets one waiting thread go on, or the next one that comes.
    func signal() {
        unsafe sem_post(semaphore)
    }

    /// Waits for a signal.
    func wait() {
        while unsafe sem_wait(semaphore) != 0 && errno == EINTR {}
    }

    /// Waits for a signal for at most so long; whether it came.
    func wait(within limit: Duration) -> Bool {
        var end = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &end)
        let (seconds, attoseconds) = max(limit, .zero).components
        let nanoseconds = end.tv_nsec + Int(attoseconds / 1_000_000_000)
        end.tv_sec += Int(min(seconds, 86_400)) + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        while unsafe sem_timedwait(semaphore, &end) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }
}

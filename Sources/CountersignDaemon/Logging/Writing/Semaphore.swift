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

/// Runs `body` on a thread of its own, which nobody waits for. All signals are blocked on it: they are the main thread's,
/// and a write to a pipe that nobody reads any more is an error there, not the end of the process.
func startThread(_ body: @escaping @Sendable () -> Void) {
    let start = unsafe Unmanaged.passRetained(ThreadStart(body))
    var all = sigset_t()
    var before = sigset_t()
    unsafe sigfillset(&all)
    unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
    var thread = pthread_t()
    let result = unsafe pthread_create(
        &thread, nil,
        { argument in
            guard let argument = unsafe argument else { return nil }
            unsafe Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, start.toOpaque())
    if result == 0 {
        pthread_detach(thread)
    } else {
        unsafe start.release()
    }
}

private final class ThreadStart {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}

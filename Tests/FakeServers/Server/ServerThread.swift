// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A thread of the system that can be waited for.
struct ServerThread: Sendable {
    private let identifier: pthread_t

    /// Starts a thread that runs that work; `nil` where the system refuses one.
    init?(running work: @escaping @Sendable () -> Void) {
        let box = unsafe Unmanaged.passRetained(Work(work))
        // Signals are for the program's own threads: a new thread inherits the mask of the one that starts it.
        var all = sigset_t()
        var before = sigset_t()
        unsafe sigfillset(&all)
        unsafe pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &before, nil) }
        var identifier = pthread_t()
        let result = unsafe pthread_create(
            &identifier, nil,
            { pointer in
                if let pointer = unsafe pointer {
                    let work = unsafe Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue()
                    work.run()
                }
                return nil
            }, unsafe box.toOpaque())
        guard result == 0 else {
            unsafe box.release()
            return nil
        }
        self.identifier = identifier
    }

    /// Waits until the thread has ended.
    func join() {
        _ = pthread_join(identifier, nil)
    }
}

private final class Work: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Signals as values: blocked in every thread, taken one by one by the main thread.
enum DaemonSignals {
    /// What the operator or the service manager wants.
    enum Wish: Equatable {
        /// The time is up and nobody wants anything.
        case none
        /// SIGHUP.
        case reload
        /// SIGTERM or SIGINT.
        case terminate
    }

    /// Blocks them; to be called before any thread is started, so that all inherit it.
    static func block() throws {
        var set = wanted()
        // A write to a connection that is gone is an error to be read, not a reason to die.
        signal(SIGPIPE, SIG_IGN)
        // The same for a file that reaches RLIMIT_FSIZE.
        signal(SIGXFSZ, SIG_IGN)
        guard unsafe pthread_sigmask(SIG_BLOCK, &set, nil) == 0 else {
            throw CompositionError("the signals cannot be blocked")
        }
    }

    /// Waits for the next one, at most so long.
    static func wait(atMost limit: Duration) -> Wish {
        var set = wanted()
        let (seconds, attoseconds) = limit.components
        var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        switch unsafe sigtimedwait(&set, nil, &time) {
        case SIGHUP: return .reload
        case SIGTERM, SIGINT: return .terminate
        default: return .none
        }
    }

    /// CLOCK_MONOTONIC in microseconds, as RELOADING wants it (sd_notify(3)).
    static func monotonicMicroseconds() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
    }

    private static func wanted() -> sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for signal in [SIGHUP, SIGTERM, SIGINT] { unsafe sigaddset(&set, signal) }
        return set
    }
}

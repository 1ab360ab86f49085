// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// Signals of the daemon, blocked in every thread and received by the main thread.
enum DaemonSignals {
    /// Request of the operator or the service manager.
    enum Request: Equatable {
        /// No signal within the time limit.
        case none
        /// SIGHUP.
        case reload
        /// SIGTERM or SIGINT.
        case terminate(Int32)
    }

    /// Blocks the signals. Must be called before any thread is started, so that all threads inherit the mask.
    static func block() throws {
        // A write to a closed connection then fails with an error, and does not end the process.
        signal(SIGPIPE, SIG_IGN)
        // Likewise a write to a file that has reached RLIMIT_FSIZE.
        signal(SIGXFSZ, SIG_IGN)
        do throws(SystemError) {
            try handled.block()
        } catch {
            throw CompositionError("the signals cannot be blocked: \(error)", mayPass: error.mayPass)
        }
    }

    /// Waits for the next signal, at most for `limit`.
    static func wait(atMost limit: Duration) -> Request {
        switch handled.wait(within: limit) {
        case SIGHUP: .reload
        case SIGTERM: .terminate(SIGTERM)
        case SIGINT: .terminate(SIGINT)
        default: .none
        }
    }

    private static let handled = SignalSet([SIGHUP, SIGTERM, SIGINT])
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Glibc

/// Signals that are blocked in every thread and received one after the other by one thread.
package struct SignalSet: Sendable {
    private let numbers: [Int32]

    /// The set of these signals.
    package init(_ numbers: [Int32]) { self.numbers = numbers }

    /// Blocks the signals. Call this before any thread is started, so that all threads inherit the mask.
    package func block() throws(SystemError) {
        var set = kernelSet
        let code = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
        if code != 0 { throw SystemError(code: code) }
    }

    /// Waits for the next signal for at most `limit`; nil if none came, or another signal interrupted the wait.
    package func wait(within limit: Duration) -> Int32? {
        var set = kernelSet
        var time = limit.timespec
        let number = unsafe sigtimedwait(&set, nil, &time)
        return number > 0 ? number : nil
    }

    private var kernelSet: sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in numbers { unsafe sigaddset(&set, number) }
        return set
    }
}

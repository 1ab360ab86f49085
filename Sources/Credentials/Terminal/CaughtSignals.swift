// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// The writing end of the pipe that the handler tells of a signal through; -1 while none is caught.
private let wakeUp = Atomic<Int32>(-1)
/// The signal that came, or 0.
private let arrived = Atomic<Int32>(0)

/// Holds back the signals that would end or stop the process, while the terminal is not as its user left it. A handler may
/// do next to nothing, so it writes to a pipe, and `release` sends the signal again once all is as before.
struct CaughtSignals: ~Copyable {
    private static let numbers = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGALRM]

    private let reader: Descriptor
    private let writer: Descriptor
    private let before: [(number: Int32, action: sigaction)]

    /// Readable once a signal has come.
    var descriptor: Int32 { reader.number }

    init() throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        _ = try systemCall { unsafe pipe(&ends) }
        reader = Descriptor(owning: ends[0])
        writer = Descriptor(owning: ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        arrived.store(0, ordering: .sequentiallyConsistent)
        wakeUp.store(ends[1], ordering: .sequentiallyConsistent)
        before = Self.numbers.map { number in
            var action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = { number in
                arrived.store(number, ordering: .sequentiallyConsistent)
                var byte: UInt8 = 0
                unsafe write(wakeUp.load(ordering: .sequentiallyConsistent), &byte, 1)
            }
            var previous = sigaction()
            unsafe sigaction(number, &action, &previous)
            return (number, previous)
        }
    }

    /// Puts everything back, and sends the signal that came, if one did.
    consuming func release() {
        for (number, action) in before {
            var action = action
            unsafe sigaction(number, &action, nil)
        }
        wakeUp.store(-1, ordering: .sequentiallyConsistent)
        let number = arrived.load(ordering: .sequentiallyConsistent)
        if number != 0 { raise(number) }
    }
}

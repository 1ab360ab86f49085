// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// Says which sentence a trap, a fault or a hang came from, in a signal handler: with what is there and nothing allocated.
@safe
enum CrashReport {
    /// Seconds that no sentence takes.
    private static let longest = 10

    /// The seed of the sentence that is being read. One thread speaks in the runner.
    nonisolated(unsafe) static var spoken: UInt64 = 0
    nonisolated(unsafe) private static var text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 200)
    nonisolated(unsafe) private static var length = 0
    /// The handlers' own; held here so that no leak is seen in it.
    nonisolated(unsafe) private static let stackMemory = UnsafeMutableRawPointer.allocate(
        byteCount: 65_536, alignment: 16)
    nonisolated(unsafe) private static var lastSeed = UInt64.max

    static func install(for name: String) {
        for byte in "\nThe process ended in \(name).\n  again: Tests/Fuzz/grammar \(name) --seed ".utf8.prefix(150) {
            unsafe text[length] = byte
            unsafe length += 1
        }
        // For the end of the stack, too, whose handler needs a stack of its own.
        var stack = unsafe stack_t(ss_sp: stackMemory, ss_flags: 0, ss_size: 65_536)
        unsafe sigaltstack(&stack, nil)
        for number in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE] {
            var action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = { _ in CrashReport.write() }
            action.sa_flags = SA_ONSTACK | Int32(bitPattern: UInt32(SA_RESETHAND))
            unsafe sigaction(number, &action, nil)
        }
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { _ in CrashReport.look() }
        action.sa_flags = SA_RESTART
        unsafe sigaction(SIGVTALRM, &action, nil)
        var interval = itimerval(
            it_interval: timeval(tv_sec: longest, tv_usec: 0), it_value: timeval(tv_sec: longest, tv_usec: 0))
        unsafe setitimer(__itimer_which_t(1), &interval, nil)
    }

    /// The time is that of the processor: a sentence that is spoken since the last look, and still is, hangs.
    private static func look() {
        if unsafe lastSeed == spoken { write() }
        unsafe lastSeed = spoken
    }

    private static func write() {
        var digits = unsafe length
        var divisor: UInt64 = 1
        while unsafe spoken / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            unsafe text[digits] = UInt8(0x30 + spoken / divisor % 10)
            digits += 1
            divisor /= 10
        }
        unsafe text[digits] = 0x0A
        unsafe Glibc.write(1, text.baseAddress, digits + 1)
        _exit(70)
    }
}

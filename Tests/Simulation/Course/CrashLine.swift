// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// The line that a crash of the program prints: which run it was, so that it can be repeated.
///
/// It is written before each run, because a handler of a signal may not allocate (signal-safety(7)).
enum CrashLine {
    private static let capacity = 1_024
    private nonisolated(unsafe) static let bytes = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
    private nonisolated(unsafe) static var count = 0

    /// Makes each crash print the line, and then end the process as it does by itself.
    static func install() {
        set("")
        for signal in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] {
            _ = Glibc.signal(signal) { signal in
                _ = unsafe write(1, CrashLine.bytes, CrashLine.count)
                _ = Glibc.signal(signal, SIG_DFL)
                raise(signal)
            }
        }
    }

    /// Sets the run that is under way.
    static func set(_ run: String) {
        let line = Array("\(run): crashed\n".utf8.prefix(capacity))
        unsafe bytes.copyMemory(from: line, byteCount: line.count)
        unsafe count = line.count
    }
}

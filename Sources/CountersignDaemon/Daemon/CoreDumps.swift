// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// What a crash leaves on disk and in the log.
enum CoreDumps {
    /// Has the kernel write no memory image of this process, whatever the limits say, and lets no other process of the same
    /// user trace it or read its memory (PR_SET_DUMPABLE, prctl(2)). Where that fails, the limits decide.
    ///
    /// Swift's own crash handler goes as well, unless somebody has asked for it: it prints memory that registers point to,
    /// and a process that gets SIGABRT from outside (the watchdog of systemd) lives on after it.
    static func forbid() {
        _ = clinux_forbid_dumps()
        // `Process.environment` is read once, and the demo sets its credentials there later on.
        guard unsafe getenv("SWIFT_BACKTRACE") == nil else { return }
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// A running process, which stays the same one even if its number is given to another (pidfd_open(2)).
package struct ProcessHandle: ~Copyable {
    let descriptor: Descriptor

    /// Opens the process with this number. `ESRCH` if there is none.
    package init(_ process: Int32) throws(SystemError) {
        let number = clinux_process_descriptor(process)
        guard number >= 0 else { throw SystemError(code: 0 &- number) }
        descriptor = Descriptor(owning: number)
    }

    /// Sends a signal. `ESRCH` if the process has ended, `EPERM` if this user may not.
    package func send(signal: Int32) throws(SystemError) {
        let code = clinux_signal_process(descriptor.number, signal)
        guard code >= 0 else { throw SystemError(code: 0 &- code) }
    }

    /// Waits until the process has ended, for at most `limit`. Returns false if the time is over.
    package func waitForEnd(within limit: Duration) throws(SystemError) -> Bool {
        try DescriptorIO.waitUntilReadable(descriptor.number, within: limit)
    }
}

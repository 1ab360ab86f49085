// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Why the demonstration's server could not start.
package struct DemoServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What was tried.
    package let doing: String
    /// The port.
    package let port: UInt16
    /// The system's error number (`errno`).
    package let code: Int32

    /// What was tried, on which port, and which error it met.
    package var description: String {
        "cannot \(doing), port \(port): error \(code)\(code == EADDRINUSE ? " (the port is taken; choose another)" : "")"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A reason why the demonstration's server could not start.
package struct DemoServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The step that failed.
    package let doing: String
    /// The port.
    package let port: UInt16
    /// The system's error number (`errno`).
    package let code: Int32

    /// The step, its port, and the error that it met.
    package var description: String {
        "cannot \(doing), port \(port): error \(code)\(code == EADDRINUSE ? " (the port is taken; choose another)" : "")"
    }
}

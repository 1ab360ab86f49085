// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux

/// A pipe whose ends are closed on exec.
@frozen
package struct Pipe: ~Copyable {
    /// The end that is read from.
    package let reader: Descriptor
    /// The end that is written to.
    package let writer: Descriptor

    /// Opens a pipe.
    package init() throws(SystemError) {
        let ends = try Self.open()
        reader = Descriptor(owning: ends.reader)
        writer = Descriptor(owning: ends.writer)
    }

    private static func open() throws(SystemError) -> (reader: Int32, writer: Int32) {
        var (reader, writer): (Int32, Int32) = (-1, -1)
        let code = unsafe clinux_pipe(&reader, &writer)
        guard code == 0 else { throw SystemError(code: 0 &- code) }
        return (reader, writer)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A command in the form in which it is sent.
///
/// It is a list of strings of any bytes, each preceded by its length, so that the strings are unambiguous.
package struct Command: Sendable, Equatable {
    /// The bytes to send.
    package private(set) var bytes: [UInt8]

    /// Makes a command of these arguments, the first of which is its name.
    package init(_ arguments: [Argument]) {
        bytes = []
        bytes.reserveCapacity(16 + arguments.reduce(0) { $0 + $1.bytes.count + 16 })
        append(UInt8(ascii: "*"), arguments.count)
        for argument in arguments {
            append(UInt8(ascii: "$"), argument.bytes.count)
            bytes += argument.bytes
            endLine()
        }
    }

    private mutating func append(_ kind: UInt8, _ number: Int) {
        bytes.append(kind)
        bytes += String(number).utf8
        endLine()
    }

    private mutating func endLine() {
        bytes.append(13)
        bytes.append(10)
    }

    /// One of its strings.
    package struct Argument: Sendable, Equatable, ExpressibleByStringLiteral {
        /// Its bytes.
        package var bytes: [UInt8]

        /// These bytes.
        package init(_ bytes: [UInt8]) { self.bytes = bytes }

        /// The UTF-8 of a text.
        package init(_ text: String) { bytes = Array(text.utf8) }

        /// The digits of a number.
        package init(_ number: Int64) { self.init(String(number)) }

        /// The UTF-8 of a literal.
        package init(stringLiteral text: String) { self.init(text) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An entry of the journal: its fields, laid one after the other in one run of bytes.
package struct JournalEntry: Equatable, Sendable {
    /// The most fields of one entry; more are left out. (journald itself stops at 1024.)
    package static let maximumFields = 64
    /// The most bytes of one field's value; a longer one is cut there.
    package static let maximumValueBytes = 16 * 1024

    /// `NAME=value` of each field, without anything between them.
    package private(set) var arena: [UInt8] = []
    /// Where each field ends in ``arena``.
    package private(set) var ends: [Int] = []

    /// An entry without fields.
    package init() {}

    /// Appends a field. The value may be any bytes; a name may come again, and then has several values.
    package mutating func append(_ field: JournalField, _ value: some Sequence<UInt8>) {
        guard ends.count < Self.maximumFields else { return }
        arena.append(contentsOf: field.name.utf8)
        arena.append(0x3D)
        arena.append(contentsOf: value.lazy.prefix(Self.maximumValueBytes))
        ends.append(arena.count)
    }

    /// Appends a field with the UTF-8 of `text`.
    package mutating func append(_ field: JournalField, _ text: String) {
        append(field, text.utf8)
    }

    /// The fields as text, `NAME=value` each, for tests and traces.
    package var fields: [String] {
        var start = 0
        return ends.map { end in
            defer { start = end }
            return String(decoding: arena[start..<end], as: UTF8.self)
        }
    }
}

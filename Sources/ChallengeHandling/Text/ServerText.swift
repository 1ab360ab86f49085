// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Text that a server chose, made fit for a message: one line, of bounded length, without control signs.
package enum ServerText {
    /// A name, for example of a security check: at most 64 signs of printable ASCII, others become `?`.
    package static func name(_ text: String) -> String {
        String(decoding: text.utf8.prefix(64).map { $0 > 0x20 && $0 < 0x7F ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    /// A sentence: at most 200 signs, control signs become spaces.
    package static func sentence(_ text: String) -> String {
        String(
            text.unicodeScalars.prefix(200).map { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: " "
                default: Character(scalar)
                }
            })
    }
}

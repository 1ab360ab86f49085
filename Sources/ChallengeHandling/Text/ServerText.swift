// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Server-chosen text, made safe for a message: one line, limited length, no control characters.
package enum ServerText {
    /// Returns a name, such as that of a security check: at most 64 characters, and `?` for everything but printable
    /// ASCII.
    package static func name(_ text: String) -> String {
        String(decoding: text.utf8.prefix(64).map { $0 > 0x20 && $0 < 0x7F ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    /// Returns a sentence: at most 200 characters, with spaces for control characters.
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

/// Text with short runs of combining marks.
///
/// Swift compares and hashes strings in canonical form and sorts each run of marks for this, in time quadratic in the
/// length of the run: comparing a run of 64 KiB with "a" takes seconds. Readable text has runs of at most 30 (UAX #15,
/// stream-safe text). `Span.text` ensures this for HTTP fields.
package enum TextRuns {
    private static let longest = 30

    /// Returns true if no run of combining marks is longer than that.
    package static func areShort(in text: String) -> Bool { bounded(text) == nil }

    /// Returns `text` with a U+FFFD after every 30 marks of a longer run.
    package static func broken(_ text: String) -> String { bounded(text) ?? text }

    /// Returns the text with shortened runs; nil without a long run.
    private static func bounded(_ text: String) -> String? {
        // Most text is ASCII, which has no marks.
        guard !text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        var run = 0
        var isLong = false
        var bounded = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
            if isMark, run == longest {
                isLong = true
                bounded.append("\u{FFFD}")
                run = 0
            }
            run = isMark ? run + 1 : 0
            bounded.append(scalar)
        }
        return isLong ? String(bounded) : nil
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Texts whose combining marks stand in short runs.
///
/// Swift compares and hashes strings by their canonical form, and sorts each run of marks for that, in a time that grows with the
/// square of its length: a run of 64 KiB takes seconds to compare with "a". Text that is meant to be read has runs of at most 30
/// (UAX #15, stream-safe text). What a field of HTTP says has them by `Span.text`.
package enum TextRuns {
    private static let longest = 30

    /// Returns whether no run of combining marks is longer than that.
    package static func areShort(in text: String) -> Bool { bounded(text) == nil }

    /// `text` with a U+FFFD after every 30 marks of a longer run.
    package static func broken(_ text: String) -> String { bounded(text) ?? text }

    /// `nil` where `text` has no such run.
    private static func bounded(_ text: String) -> String? {
        // Most is ASCII, which has no marks.
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension String {
    /// The same with a U+FFFD after every 30 combining marks in a row.
    ///
    /// Swift compares and hashes strings by their canonical form, and sorts each run of marks for that, in a time that grows with the
    /// square of its length: a field of 64 KiB takes seconds to compare with "a". Text that is meant to be read has no longer runs (UAX
    /// #15, stream-safe text).
    var withShortRuns: String {
        // Most is ASCII, which has no marks.
        guard !utf8.allSatisfy({ $0 < 0x80 }) else { return self }
        var run = 0
        var bounded = UnicodeScalarView()
        for scalar in unicodeScalars {
            let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass != .notReordered
            if isMark, run == 30 {
                bounded.append("\u{FFFD}")
                run = 0
            }
            run = isMark ? run + 1 : 0
            bounded.append(scalar)
        }
        return String(bounded)
    }
}

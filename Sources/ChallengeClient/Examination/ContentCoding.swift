// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Content codings (RFC 9110 §8.4), undone for a look at the beginning of a page.
enum ContentCoding {
    /// The beginning of what `bytes` hold, which may end in their middle, or nothing where they are coded in a way that is not
    /// known. At most `limit` bytes.
    static func undone(_ bytes: [UInt8], _ codings: [String], limit: Int) -> [UInt8] {
        let names = codings.flatMap { $0.split(separator: ",") }
            .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }.filter { $0 != "identity" }
        guard !names.isEmpty else { return bytes }
        return []
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Where pages are looked at for login forms, the upstream is offered only the content codings that can be undone for that.
package enum ReadableCodings {
    private static let known: Set<String> = ["deflate", "gzip", "identity", "x-gzip"]

    /// The members of an `Accept-Encoding` that are among them, with their weights (RFC 9110 §12.5.3); `identity` where none is.
    package static func among(_ list: String) -> String {
        let kept = list.split(separator: ",").filter { member in
            let name = member.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
            return known.contains(name.lowercased())
        }
        // Without a word of `*` whatever is not named is refused, or no more than allowed (§12.5.3).
        return kept.isEmpty ? "identity" : kept.joined(separator: ",")
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Name of a cookie: bytes that a server chose, compared and sent back as they came (RFC 6265bis §5.6).
struct CookieName: Sendable, Hashable {
    /// The bytes, usually ASCII.
    let utf8: [UInt8]

    /// Creates a name of any bytes.
    init(_ bytes: some Sequence<UInt8>) { utf8 = Array(bytes) }

    /// Creates the name that a configuration or a library's user has written.
    init(_ text: String) { utf8 = Array(text.utf8) }

    /// True if there is no name: the cookie is its value alone.
    var isEmpty: Bool { utf8.isEmpty }

    /// The name for comparisons with configured ones and for reports, with U+FFFD for invalid UTF-8.
    var text: String { TextRuns.broken(String(decoding: utf8, as: UTF8.self)) }

    /// Returns true if the name begins with the lower-case `prefix`, in any case.
    func hasPrefix(lowercased prefix: String) -> Bool {
        utf8.prefix(prefix.utf8.count).map(\.lowercased).elementsEqual(prefix.utf8)
    }
}

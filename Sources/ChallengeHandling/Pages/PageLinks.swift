// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Title and links of a page, for a search for its login page.
package struct PageLinks: Sendable, Equatable {
    /// The largest number of links, and of bytes of a title.
    package static let limit = 512, titleLimit = 120

    /// The text between `<title>` and its end tag as written; `nil` if missing, or if it is longer than the limit.
    package let title: String?
    /// The targets of the links, in order, each once.
    package let links: [String]

    /// Parses a page in an ASCII-compatible encoding. Any bytes are accepted.
    package init(parsing bytes: some Collection<UInt8>) {
        let bytes = Array(bytes.prefix(HTMLPage.limit))
        var scanner = HTMLScanner(bytes)
        var links: [String] = []
        var known: Set<String> = []
        while links.count < Self.limit, let token = scanner.next() {
            guard case .tag(let tag) = token, tag.name.element == .a, !tag.isEnd,
                let target = scanner.attributes(of: tag)["href"], known.insert(target).inserted
            else { continue }
            links.append(target)
        }
        self.links = links
        title = Self.title(in: bytes)
    }

    private static func title(in bytes: [UInt8]) -> String? {
        let open = Array("<title>".utf8)
        guard let start = bytes.range(ofLowercased: open)?.upperBound else { return nil }
        let text = bytes[start...].prefix(titleLimit + 1).prefix { $0 != UInt8(ascii: "<") }
        guard text.count <= titleLimit, text.contains(where: { !$0.isASCIIWhitespace }) else { return nil }
        return String(validating: text, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Returns the first range that equals the lower-case `word`, ignoring the case of ASCII letters.
    fileprivate func range(ofLowercased word: [UInt8]) -> Range<Int>? {
        guard let first = word.first, count >= word.count else { return nil }
        for start in 0...(count - word.count) where self[start].lowercased == first {
            let end = start + word.count
            if zip(self[start..<end], word).allSatisfy({ $0.lowercased == $1 }) { return start..<end }
        }
        return nil
    }
}

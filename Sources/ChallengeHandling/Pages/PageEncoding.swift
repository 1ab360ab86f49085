// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Charsets

/// Encoding of a page, by its byte order mark, its media type, and what the page says itself (WHATWG HTML §13.2.3.2).
package struct PageEncoding: Sendable, Equatable {
    /// Number of bytes in which a page may name its encoding, if its head is that long.
    private static let searchLimit = 64 * 1024, leastSearch = 1024

    /// The encoding.
    package let charset: Charset
    /// True if nothing names the encoding, so that it is the one that browsers assume.
    package let isAssumed: Bool
    /// True if the page could not be converted. Its text is then read as UTF-8.
    package let isUnreadable: Bool
    private let markLength: Int

    init(of page: [UInt8], type: String?) {
        let marks: [([UInt8], Charset)] = [
            ([0xEF, 0xBB, 0xBF], .utf8), ([0xFE, 0xFF], .utf16BigEndian), ([0xFF, 0xFE], .utf16LittleEndian),
        ]
        let mark = marks.first { page.starts(with: $0.0) }
        markLength = mark?.0.count ?? 0
        let media = type.map { MediaType($0) }
        if let named = mark?.1 ?? media?.charset.flatMap({ Charset(label: $0.utf8) }) ?? Self.named(in: page) {
            (charset, isAssumed) = (named, false)
        } else if media?.isXML == true {
            (charset, isAssumed) = (.utf8, false)
        } else {
            // Browsers detect UTF-8, and take the rest for Western.
            let isText = page.contains { $0 >= 0x80 } && String(validating: page, as: UTF8.self) != nil
            (charset, isAssumed) = (isText ? .utf8 : .western, !isText)
        }
        isUnreadable = charset.decoded([0xC3]) == nil
    }

    /// Returns the page in UTF-8. Bytes that are not of the encoding stay as they are.
    func text(_ page: [UInt8]) -> [UInt8] {
        let page = markLength > 0 ? Array(page.dropFirst(markLength)) : page
        return charset.decoded(page) ?? page
    }

    /// Returns the encoding that the page names in its head.
    private static func named(in page: [UInt8]) -> Charset? {
        var scanner = HTMLScanner(Array(page.prefix(searchLimit)))
        if page.starts(with: "<?xml".utf8), let end = page.prefix(leastSearch).firstIndex(of: UInt8(ascii: ">")) {
            let attributes = HTMLAttributes(page, 5..<end)
            if let found = attributes["encoding"].flatMap({ Charset(label: $0.utf8) }) { return found.named }
        }
        var searched = 0
        while let token = scanner.next() {
            guard case .tag(let tag) = token else { continue }
            searched = tag.attributes.upperBound
            guard tag.name.element == .meta, !tag.isEnd else {
                if searched > leastSearch, !tag.name.isInHead { return nil }
                continue
            }
            let attributes = scanner.attributes(of: tag)
            let isType = attributes.word("http-equiv") == "content-type"
            let label = attributes["charset"] ?? (isType ? attributes["content"].flatMap(MediaType.charset) : nil)
            if let found = label.flatMap({ Charset(label: $0.utf8) }) { return found.named }
        }
        return nil
    }
}

extension Charset {
    /// The encoding that a page means that names this one in its own text.
    fileprivate var named: Charset {
        if name.hasPrefix("UTF-16") { return .utf8 }
        return name == "x-user-defined" ? .western : self
    }
}

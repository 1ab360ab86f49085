// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Pairs of one `Cookie` field (RFC 6265 §5.4): the sessions' first, then injected ones, then the caller's.
///
/// Some servers still read cookies as RFC 2109 and RFC 2965 wrote them, with quoted values and names such as `$Version`.
/// There, `$Version=1; a="x` of a caller before the session's cookie and `y"` behind it make the session's cookie a part of `a`,
/// which the application may show. Hence no pair of a caller comes before a session's, none begins with `$`, and none
/// opens a quotation that it does not close.
package struct CookiePairs {
    private struct Pair {
        let text: Range<Int>
        let nameEnd: Int
        /// True if a later pair of that name takes its place.
        var givesWay: Bool
        var isReplaced = false
    }

    /// The pairs with `; ` between them, those that have been replaced as well.
    private var bytes: [UInt8] = []
    private var pairs: [Pair] = []
    private var hasReplaced = false

    /// Creates an empty list.
    package init() {}

    /// The field's value; `nil` without pairs.
    package var text: [UInt8]? {
        guard hasReplaced else { return pairs.isEmpty ? nil : bytes }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        for pair in pairs where !pair.isReplaced {
            if !text.isEmpty { text += "; ".utf8 }
            text += bytes[pair.text]
        }
        return text.isEmpty ? nil : text
    }

    /// Appends the cookies of a session. They replace former ones of their names, unless they give way to those.
    package mutating func append(_ line: CookieLine) {
        let former = pairs.count
        for (number, cookie) in line.cookies.enumerated() {
            let name = cookie.name.utf8
            let givesWay = line.givesWay[number]
            var isTaken = false
            for index in 0..<former where isNamed(index, name, 0..<name.count) {
                if givesWay { isTaken = true } else { replace(index) }
            }
            guard !isTaken else { continue }
            let start = begin()
            for byte in name { bytes.append(byte) }
            if !name.isEmpty { bytes.append(UInt8(ascii: "=")) }
            cookie.value.withBytes { value in
                for index in value.indices { bytes.append(value[index]) }
            }
            pairs.append(Pair(text: start..<bytes.count, nameEnd: start + name.count, givesWay: givesWay))
        }
    }

    /// Appends the pairs of injected fields.
    package mutating func append(injected lines: [[UInt8]]) { append(lines, areCallers: false) }

    /// Appends a caller's pairs, except those that could enclose another one.
    package mutating func append(callers lines: [[UInt8]]) { append(lines, areCallers: true) }

    /// Appends pairs. Those with a name of a former pair are left out, unless it gives way.
    private mutating func append(_ lines: [[UInt8]], areCallers: Bool) {
        let former = pairs.count
        for line in lines {
            var start = 0
            while start < line.count {
                var end = start
                while end < line.count, line[end] != UInt8(ascii: ";") { end += 1 }
                while start < end, line[start].isBlank { start += 1 }
                if start < end, !areCallers || line[start] != UInt8(ascii: "$") && Self.isClosed(line, start..<end) {
                    append(line, start..<end, among: former)
                }
                start = end + 1
            }
        }
    }

    private mutating func append(_ line: [UInt8], _ pair: Range<Int>, among former: Int) {
        // Compared as bytes, as the upstream reads them: an `=` with a combining accent is another `Character`.
        var nameEnd = pair.lowerBound
        while nameEnd < pair.upperBound, line[nameEnd] != UInt8(ascii: "=") { nameEnd += 1 }
        while nameEnd > pair.lowerBound, line[nameEnd - 1].isBlank { nameEnd -= 1 }
        let name = pair.lowerBound..<nameEnd
        for index in 0..<former where isNamed(index, line, name) {
            guard pairs[index].givesWay else { return }
            replace(index)
        }
        let start = begin()
        for index in pair { bytes.append(line[index]) }
        pairs.append(Pair(text: start..<bytes.count, nameEnd: start + name.count, givesWay: false))
    }

    /// Begins another pair. Returns where its text begins.
    private mutating func begin() -> Int {
        if !pairs.isEmpty {
            bytes.append(UInt8(ascii: ";"))
            bytes.append(.space)
        }
        return bytes.count
    }

    private mutating func replace(_ index: Int) {
        pairs[index].isReplaced = true
        hasReplaced = true
    }

    /// Returns true if the pair at `index` has the name at `range` of `line`.
    private func isNamed(_ index: Int, _ line: [UInt8], _ range: Range<Int>) -> Bool {
        let pair = pairs[index]
        let start = pair.text.lowerBound
        guard pair.nameEnd - start == range.count else { return false }
        for offset in 0..<range.count where bytes[start + offset] != line[range.lowerBound + offset] { return false }
        return true
    }

    /// Returns true if each quotation of a pair is closed, for servers that read `\"` as a part of it and for others.
    private static func isClosed(_ line: [UInt8], _ pair: Range<Int>) -> Bool {
        var isOpen = false
        var isOpenWithEscapes = false
        var isEscaped = false
        for index in pair {
            let byte = line[index]
            if byte == UInt8(ascii: "\"") {
                isOpen.toggle()
                if !isEscaped { isOpenWithEscapes.toggle() }
            }
            isEscaped = isOpenWithEscapes && !isEscaped && byte == UInt8(ascii: "\\")
        }
        return !isOpen && !isOpenWithEscapes
    }
}

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

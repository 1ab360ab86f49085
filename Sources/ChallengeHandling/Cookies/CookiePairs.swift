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
        var name: [UInt8]
        var text: [UInt8]
        /// True if a later pair of that name takes its place.
        var givesWay: Bool
    }

    private var pairs: [Pair] = []

    /// Creates an empty list.
    package init() {}

    /// The field's value; `nil` without pairs.
    package var text: [UInt8]? {
        pairs.isEmpty ? nil : Array(pairs.map(\.text).joined(separator: "; ".utf8))
    }

    /// Appends the cookies of a session. They replace former ones of their names, unless they give way to those.
    package mutating func append(_ line: CookieLine) {
        pairs.removeAll { line.names[$0.name] == false }
        let former = Set(pairs.map(\.name))
        for cookie in line.cookies {
            let name = cookie.name.utf8
            guard !former.contains(name) else { continue }
            var text = cookie.namePrefix
            cookie.value.withBytes { value in
                for index in value.indices { text.append(value[index]) }
            }
            pairs.append(Pair(name: name, text: text, givesWay: line.names[name] == true))
        }
    }

    /// Appends the pairs of injected fields.
    package mutating func append(injected lines: [[UInt8]]) { append(lines) { _ in true } }

    /// Appends a caller's pairs, except those that could enclose another one.
    package mutating func append(callers lines: [[UInt8]]) {
        append(lines) { $0.first != UInt8(ascii: "$") && Self.isClosed($0) }
    }

    /// Appends pairs. Those with a name of a former pair are left out, unless it gives way.
    private mutating func append(_ lines: [[UInt8]], where isUsable: (ArraySlice<UInt8>) -> Bool) {
        var new: [Pair] = []
        for line in lines {
            // Compared as bytes, as the upstream reads them: an `=` with a combining accent is another `Character`.
            for pair in line.split(separator: UInt8(ascii: ";")) {
                let pair = pair.drop(while: \.isBlank)
                guard !pair.isEmpty, isUsable(pair) else { continue }
                let name = Self.name(of: pair)
                guard !pairs.contains(where: { $0.name == name && !$0.givesWay }) else { continue }
                new.append(Pair(name: name, text: Array(pair), givesWay: false))
            }
        }
        let replaced = Set(new.map(\.name))
        pairs.removeAll { replaced.contains($0.name) && $0.givesWay }
        pairs += new
    }

    private static func name(of pair: ArraySlice<UInt8>) -> [UInt8] {
        let name = pair.prefix { $0 != UInt8(ascii: "=") }
        let end = name.lastIndex { !$0.isBlank }.map(name.index(after:)) ?? name.startIndex
        return Array(name[..<end])
    }

    /// Returns true if each quotation of a pair is closed, for servers that read `\"` as a part of it and for others.
    private static func isClosed(_ pair: ArraySlice<UInt8>) -> Bool {
        var isOpen = false
        var isOpenWithEscapes = false
        var isEscaped = false
        for byte in pair {
            if byte == UInt8(ascii: "\"") {
                isOpen.toggle()
                if !isEscaped { isOpenWithEscapes.toggle() }
            }
            isEscaped = isOpenWithEscapes && !isEscaped && byte == UInt8(ascii: "\\")
        }
        return !isOpen && !isOpenWithEscapes
    }
}

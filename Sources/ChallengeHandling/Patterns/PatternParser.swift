// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Parser of the text of a pattern.
struct PatternParser {
    /// Tree of a pattern.
    indirect enum Node: Equatable {
        case bytes(ByteSet)
        /// Nodes one after the other.
        case sequence([Node])
        /// One of several nodes, the first that leads to a match.
        case choice([Node])
        /// Repetitions: at least `least`, at most `most` (nil: any number), as many or as few as possible.
        case repetition(Node, least: Int, most: Int?, isLazy: Bool)
        /// The group whose bytes are the result.
        case group(Node)
    }

    /// Maximum depth of groups.
    private static let deepest = 16
    /// Maximum number of repetitions in braces.
    private static let mostRepetitions = 1000

    private var rest: Substring.UTF8View
    private var depth = 0
    private var groups = 0

    /// Creates a parser of `source`.
    init(_ source: String) { rest = Substring(source).utf8 }

    /// Returns the tree, or throws. There is exactly one group.
    mutating func parse() throws(PatternError) -> Node {
        let node = try choice()
        guard rest.isEmpty else { throw PatternError(reason: "has a ) without a (") }
        guard groups == 1 else {
            throw PatternError(
                reason: groups == 0
                    ? "needs one group in parentheses around the value"
                    : "has \(groups) groups; write (?:…) for all but the one around the value")
        }
        return node
    }

    private mutating func choice() throws(PatternError) -> Node {
        var branches = [try sequence()]
        while rest.first == UInt8(ascii: "|") {
            rest.removeFirst()
            branches.append(try sequence())
        }
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func sequence() throws(PatternError) -> Node {
        var nodes: [Node] = []
        while let byte = rest.first, byte != UInt8(ascii: "|"), byte != UInt8(ascii: ")") {
            let node = try atom()
            nodes.append(try repeated(node))
        }
        return .sequence(nodes)
    }

    private mutating func atom() throws(PatternError) -> Node {
        guard let byte = rest.popFirst() else { return .sequence([]) }
        switch byte {
        case UInt8(ascii: "("): return try group()
        case UInt8(ascii: "["): return .bytes(try bytesInBrackets())
        case UInt8(ascii: "."): return .bytes(ByteSet.all.subtracting(ByteSet(UInt8(ascii: "\n"))))
        case UInt8(ascii: "\\"): return .bytes(try escape())
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
            throw PatternError(
                reason: "repeats nothing at \"\(Character(UnicodeScalar(byte)))\"; write \\ before the character itself"
            )
        case UInt8(ascii: "^"), UInt8(ascii: "$"):
            throw PatternError(
                reason:
                    "has \"\(Character(UnicodeScalar(byte)))\", which is not supported; write \\ before the character "
                    + "itself")
        default: return .bytes(ByteSet(byte))
        }
    }

    private mutating func group() throws(PatternError) -> Node {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw PatternError(reason: "has more than \(Self.deepest) nested groups") }
        var isPlain = false
        if rest.first == UInt8(ascii: "?") {
            guard rest.starts(with: "?:".utf8) else {
                throw PatternError(reason: "has a (? other than (?:…), which is not supported")
            }
            rest.removeFirst(2)
            isPlain = true
        } else {
            groups += 1
        }
        let node = try choice()
        guard rest.popFirst() == UInt8(ascii: ")") else { throw PatternError(reason: "has a ( without a )") }
        return isPlain ? node : .group(node)
    }

    private mutating func repeated(_ node: Node) throws(PatternError) -> Node {
        var (least, most): (Int, Int?) = (0, nil)
        switch rest.first {
        case UInt8(ascii: "*"): rest.removeFirst()
        case UInt8(ascii: "+"):
            rest.removeFirst()
            least = 1
        case UInt8(ascii: "?"):
            rest.removeFirst()
            most = 1
        case UInt8(ascii: "{"): (least, most) = try numbers()
        default: return node
        }
        let isLazy = rest.first == UInt8(ascii: "?")
        if isLazy { rest.removeFirst() }
        if let next = rest.first, [UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "{")].contains(next) {
            throw PatternError(reason: "repeats a repetition")
        }
        if case .group = node {
            throw PatternError(reason: "repeats the group around the value; put the repetition into it")
        }
        return .repetition(node, least: least, most: most, isLazy: isLazy)
    }

    /// Reads `{3}`, `{3,}` or `{3,5}`.
    private mutating func numbers() throws(PatternError) -> (Int, Int?) {
        let fault = PatternError(
            reason: "has braces that are not {m}, {m,} or {m,n}; write \\{ for the character itself")
        guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else { throw fault }
        let parts = rest[rest.index(after: rest.startIndex)..<end].split(
            separator: UInt8(ascii: ","), maxSplits: 1, omittingEmptySubsequences: false)
        rest = rest[rest.index(after: end)...]
        guard let first = parts.first, let least = Int(Substring(first)), least >= 0 else { throw fault }
        var most: Int? = least
        if parts.count == 2 { most = parts[1].isEmpty ? nil : Int(Substring(parts[1])) ?? -1 }
        guard least <= most ?? least, max(least, most ?? 0) <= Self.mostRepetitions else {
            throw PatternError(reason: "repeats more than \(Self.mostRepetitions) times, or less at most than at least")
        }
        return (least, most)
    }
}

extension PatternParser {
    /// Reads the character after a backslash.
    private mutating func escape() throws(PatternError) -> ByteSet {
        guard let byte = rest.popFirst() else { throw PatternError(reason: "ends with a \\") }
        switch byte {
        case UInt8(ascii: "d"): return .digits
        case UInt8(ascii: "D"): return ByteSet.all.subtracting(.digits)
        case UInt8(ascii: "w"): return .wordBytes
        case UInt8(ascii: "W"): return ByteSet.all.subtracting(.wordBytes)
        case UInt8(ascii: "s"): return .spaces
        case UInt8(ascii: "S"): return ByteSet.all.subtracting(.spaces)
        case UInt8(ascii: "n"): return ByteSet(0x0A)
        case UInt8(ascii: "r"): return ByteSet(0x0D)
        case UInt8(ascii: "t"): return ByteSet(0x09)
        default:
            guard !ByteSet.wordBytes.contains(byte) || byte == UInt8(ascii: "_") else {
                throw PatternError(reason: "has \\\(Character(UnicodeScalar(byte))), which is not supported")
            }
            return ByteSet(byte)
        }
    }

    /// Reads the rest of `[a-f\d]` or `[^"]`.
    private mutating func bytesInBrackets() throws(PatternError) -> ByteSet {
        let isNegated = rest.first == UInt8(ascii: "^")
        if isNegated { rest.removeFirst() }
        var set = ByteSet()
        var isFirst = true
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "]"), !isFirst { return isNegated ? ByteSet.all.subtracting(set) : set }
            isFirst = false
            if byte == UInt8(ascii: "\\") {
                set.formUnion(try escape())
                continue
            }
            // A hyphen before the closing bracket is one of the bytes.
            guard rest.first == UInt8(ascii: "-"), let end = rest.dropFirst().first, end != UInt8(ascii: "]") else {
                set.insert(byte)
                continue
            }
            rest.removeFirst(2)
            guard end >= byte, end != UInt8(ascii: "\\") else {
                throw PatternError(reason: "has a range in brackets whose end is before its start")
            }
            for value in byte...end { set.insert(value) }
        }
        throw PatternError(reason: "has a [ without a ]")
    }
}

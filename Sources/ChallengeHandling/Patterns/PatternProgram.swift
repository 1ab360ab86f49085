// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Instructions that a pattern is compiled to.
struct PatternProgram: Sendable {
    /// Instruction of a thread of the search.
    enum Instruction: Sendable {
        /// Consumes a byte of the set.
        case byte(ByteSet)
        /// Continues at both, preferring the first.
        case split(Int, Int)
        /// Continues elsewhere.
        case jump(Int)
        /// Records the start of the group.
        case groupStart
        /// Records the end of the group.
        case groupEnd
        /// The pattern has matched.
        case match
    }

    /// Maximum number of instructions: repetitions in braces are written out.
    private static let mostInstructions = 2000

    private(set) var instructions: [Instruction] = []
    /// The bytes with which a match can begin. All bytes if it can be empty.
    private(set) var firstBytes = ByteSet()
    /// The bytes with which every match begins, as far as they are certain.
    private(set) var prefix: [UInt8] = []

    /// Compiles the tree of a pattern, or throws if it has too many repetitions.
    init(_ tree: PatternParser.Node) throws(PatternError) {
        try append(tree)
        try add(.match)
        firstBytes = beginnings()
        prefix = certainBeginning()
    }

    private mutating func add(_ instruction: Instruction) throws(PatternError) {
        guard instructions.count < Self.mostInstructions else {
            throw PatternError(reason: "has too many repetitions in all")
        }
        instructions.append(instruction)
    }

    private mutating func append(_ node: PatternParser.Node) throws(PatternError) {
        switch node {
        case .bytes(let set): try add(.byte(set))
        case .sequence(let nodes): for node in nodes { try append(node) }
        case .group(let node):
            try add(.groupStart)
            try append(node)
            try add(.groupEnd)
        case .choice(let nodes):
            var ends: [Int] = []
            for (index, node) in nodes.enumerated() {
                guard index + 1 < nodes.count else {
                    try append(node)
                    break
                }
                let split = instructions.count
                try add(.jump(0))
                try append(node)
                ends.append(instructions.count)
                try add(.jump(0))
                instructions[split] = .split(split + 1, instructions.count)
            }
            for end in ends { instructions[end] = .jump(instructions.count) }
        case .repetition(let node, let least, let most, let isLazy):
            for _ in 0..<least { try append(node) }
            guard let most else { return try appendLoop(of: node, isLazy: isLazy) }
            var splits: [Int] = []
            for _ in least..<most {
                splits.append(instructions.count)
                try add(.jump(0))
                try append(node)
            }
            for split in splits { instructions[split] = Self.split(split + 1, instructions.count, isLazy) }
        }
    }

    private mutating func appendLoop(of node: PatternParser.Node, isLazy: Bool) throws(PatternError) {
        let split = instructions.count
        try add(.jump(0))
        try append(node)
        try add(.jump(split))
        instructions[split] = Self.split(split + 1, instructions.count, isLazy)
    }

    private static func split(_ inside: Int, _ after: Int, _ isLazy: Bool) -> Instruction {
        isLazy ? .split(after, inside) : .split(inside, after)
    }

    private func certainBeginning() -> [UInt8] {
        var bytes: [UInt8] = []
        for instruction in instructions {
            switch instruction {
            case .byte(let set):
                guard let byte = set.onlyByte else { return bytes }
                bytes.append(byte)
            case .groupStart, .groupEnd: continue
            case .split, .jump, .match: return bytes
            }
        }
        return bytes
    }

    private func beginnings() -> ByteSet {
        var set = ByteSet()
        var seen: Set<Int> = []
        var waiting = [0]
        while let index = waiting.popLast() {
            guard seen.insert(index).inserted else { continue }
            switch instructions[index] {
            case .byte(let bytes): set.formUnion(bytes)
            case .split(let first, let second): waiting += [first, second]
            case .jump(let next): waiting.append(next)
            case .groupStart, .groupEnd: waiting.append(index + 1)
            case .match: return .all
            }
        }
        return set
    }
}

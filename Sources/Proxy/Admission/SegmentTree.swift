// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Tree whose edges are byte strings, such as the segments of paths. Looked up by bytes, without a copy of them.
///
/// Only `add` stores anything, so the time of a look-up depends on the configuration alone, whatever callers send.
struct SegmentTree: Sendable {
    private struct Edge {
        let parent: Int
        let child: Int
        /// Bytes of the segment in `bytes`.
        let segment: Range<Int>
    }

    /// Number of nodes. Node 0 exists from the beginning.
    private(set) var count = 1
    private var edges: [Edge] = []
    private var bytes: [UInt8] = []
    /// Numbers of edges by hash, open addressing; -1 for a free slot. At least half of the slots are free.
    private var slots: [Int] = Array(repeating: -1, count: 8)

    /// Creates a tree with one root, node 0.
    init() {}

    /// Adds a root and returns its number.
    mutating func addRoot() -> Int {
        count += 1
        return count - 1
    }

    /// Returns the child of `parent` for `segment`, which is added if there is none.
    mutating func add(_ segment: Span<UInt8>, below parent: Int) -> Int {
        if let known = child(of: parent, for: segment) { return known }
        if edges.count >= slots.count / 2 { grow() }
        let start = bytes.count
        for index in segment.indices { bytes.append(segment[index]) }
        edges.append(Edge(parent: parent, child: count, segment: start..<bytes.count))
        store(edges.count - 1)
        count += 1
        return count - 1
    }

    /// Returns the child of `parent` for `segment`. With `lowercasing`, capitals of `segment` count as small letters.
    func child(of parent: Int, for segment: Span<UInt8>, lowercasing: Bool = false) -> Int? {
        var slot = Self.hash(segment, below: parent, lowercasing: lowercasing) & (slots.count - 1)
        while slots[slot] >= 0 {
            let edge = edges[slots[slot]]
            if edge.parent == parent, isEqual(edge.segment, segment, lowercasing: lowercasing) { return edge.child }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// The greatest number of slots that one look-up examines. For tests.
    var longestSearch: Int {
        var (longest, run) = (0, 0)
        // Twice around, for a run across the end.
        for slot in slots + slots {
            run = slot < 0 ? 0 : run + 1
            longest = max(longest, run)
        }
        return longest + 1
    }
}

extension SegmentTree {
    private func isEqual(_ own: Range<Int>, _ segment: Span<UInt8>, lowercasing: Bool) -> Bool {
        guard own.count == segment.count else { return false }
        for index in segment.indices {
            let byte = segment[index]
            guard bytes[own.lowerBound + index] == (lowercasing ? byte.lowercased : byte) else { return false }
        }
        return true
    }

    private mutating func grow() {
        slots = Array(repeating: -1, count: slots.count * 2)
        for edge in edges.indices { store(edge) }
    }

    private mutating func store(_ edge: Int) {
        let hash = Self.hash(bytes.span.extracting(edges[edge].segment), below: edges[edge].parent, lowercasing: false)
        var slot = hash & (slots.count - 1)
        while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = edge
    }

    /// Returns a hash (FNV-1a, with its bits mixed at the end), not negative.
    private static func hash(_ segment: Span<UInt8>, below parent: Int, lowercasing: Bool) -> Int {
        var hash = (0xCBF2_9CE4_8422_2325 ^ UInt64(truncatingIfNeeded: parent)) &* 0x100_0000_01B3
        for index in segment.indices {
            let byte = segment[index]
            hash = (hash ^ UInt64(lowercasing ? byte.lowercased : byte)) &* 0x100_0000_01B3
        }
        hash = (hash ^ hash >> 32) &* 0x9E37_79B9_7F4A_7C15
        return Int(hash >> 33)
    }
}

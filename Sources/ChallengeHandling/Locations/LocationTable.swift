// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Table of handlers by location pattern. A pattern hides all less specific ones, even if its handlers cannot handle
/// the challenge.
///
/// A look-up takes a time that does not grow with the number of patterns.
public struct LocationTable<Handler> {
    /// The most specific match and its handlers.
    public struct Match {
        /// The most specific pattern that covers the location.
        public let pattern: LocationPattern
        /// Its handlers in order of registration; never empty.
        public let handlers: [Handler]
    }

    fileprivate struct Entry {
        let pattern: LocationPattern
        var handlers: [Handler]
    }

    /// Entries in the order of their first registration. One without handlers counts as absent.
    private var registered: [Entry] = []
    /// Positions in `registered`.
    private var positions: [LocationPattern: Int] = [:]
    private var tree = LocationTree()
    /// Number of entries without handlers.
    private var absent = 0

    /// Creates an empty table.
    public init() {}

    /// The patterns with handlers, the most specific first.
    public var patterns: [LocationPattern] { entries.map(\.pattern) }

    /// The most specific first. Patterns of equal rank, which cover no common location, keep their order.
    var entries: [(pattern: LocationPattern, handlers: [Handler])] {
        registered.lazy.filter { !$0.handlers.isEmpty }.map { (entry: $0, rank: $0.pattern.specificity) }
            .enumerated()
            .sorted { left, right in
                left.element.rank == right.element.rank
                    ? left.offset < right.offset : right.element.rank.lexicographicallyPrecedes(left.element.rank)
            }
            .map { ($0.element.entry.pattern, $0.element.entry.handlers) }
    }

    /// Appends `handler` to those of `pattern`.
    public mutating func register(_ handler: Handler, at pattern: LocationPattern) {
        if let position = positions[pattern] {
            registered[position].handlers.append(handler)
            return
        }
        positions[pattern] = registered.count
        tree.insert(registered.count, at: pattern)
        registered.append(Entry(pattern: pattern, handlers: [handler]))
    }

    /// Removes the first registration at exactly this pattern that satisfies `isMeant`, if any.
    public mutating func unregister(at pattern: LocationPattern, where isMeant: (Handler) -> Bool) {
        guard let position = positions[pattern],
            let index = registered[position].handlers.firstIndex(where: isMeant)
        else { return }
        registered[position].handlers.remove(at: index)
        // An entry without handlers would still hide the less specific patterns.
        guard registered[position].handlers.isEmpty else { return }
        positions[pattern] = nil
        tree.remove(at: pattern)
        absent += 1
        if absent > positions.count { compact() }
    }

    /// Returns the most specific pattern at `location` with its handlers. `nil` if no pattern covers the location.
    public func match(_ location: Location) -> Match? {
        guard let position = tree.first(covering: location) else { return nil }
        return Match(pattern: registered[position].pattern, handlers: registered[position].handlers)
    }

    /// Returns the handlers of all patterns that cover `location`, the most specific pattern first.
    func all(covering location: Location) -> [Handler] {
        var handlers: [Handler] = []
        tree.forEach(covering: location) { position in
            handlers += registered[position].handlers
            return true
        }
        return handlers
    }

    /// Makes the table anew without absent entries.
    private mutating func compact() {
        var fresh = LocationTable()
        for entry in registered {
            for handler in entry.handlers { fresh.register(handler, at: entry.pattern) }
        }
        self = fresh
    }
}

extension LocationTable where Handler: Equatable {
    /// Removes one registration of `handler` at exactly this pattern, if any.
    public mutating func unregister(_ handler: Handler, at pattern: LocationPattern) {
        unregister(at: pattern) { $0 == handler }
    }
}

extension LocationTable: Sendable where Handler: Sendable {}
extension LocationTable.Entry: Sendable where Handler: Sendable {}
extension LocationTable.Match: Sendable where Handler: Sendable {}

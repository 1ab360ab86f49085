// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Which handlers stand ready where. A pattern hides all less specific ones, whether or not its handlers can handle
/// what is met there.
public struct LocationTable<Handler> {
    /// A pattern that wins, and who stands there.
    public struct Match {
        /// The most specific pattern that covers the location.
        public let pattern: LocationPattern
        /// Its handlers, the earliest registered first; never empty.
        public let handlers: [Handler]
    }

    // The most specific first; those of equal rank, which cover nothing in common, as they came.
    private(set) var entries: [(pattern: LocationPattern, handlers: [Handler])] = []

    /// A table without handlers.
    public init() {}

    /// The patterns at which somebody stands, the most specific first.
    public var patterns: [LocationPattern] { entries.map(\.pattern) }

    /// Puts `handler` behind those that stand at `pattern` already.
    public mutating func register(_ handler: Handler, at pattern: LocationPattern) {
        if let index = entries.firstIndex(where: { $0.pattern == pattern }) {
            entries[index].handlers.append(handler)
            return
        }
        let index = entries.firstIndex { pattern.isMoreSpecific(than: $0.pattern) } ?? entries.endIndex
        entries.insert((pattern, [handler]), at: index)
    }

    /// Removes the first registration at exactly this pattern that `isMeant`; does nothing where there is none.
    public mutating func unregister(at pattern: LocationPattern, where isMeant: (Handler) -> Bool) {
        guard let index = entries.firstIndex(where: { $0.pattern == pattern }),
            let position = entries[index].handlers.firstIndex(where: isMeant)
        else { return }
        entries[index].handlers.remove(at: position)
        // An empty entry would go on hiding the wildcards behind it.
        if entries[index].handlers.isEmpty { entries.remove(at: index) }
    }

    /// The pattern that wins at `location` and its handlers, or `nil` where no pattern covers it.
    public func match(_ location: Location) -> Match? {
        guard let entry = entries.first(where: { $0.pattern.covers(location) }) else { return nil }
        return Match(pattern: entry.pattern, handlers: entry.handlers)
    }
}

extension LocationTable where Handler: Equatable {
    /// Removes one registration of `handler` at exactly this pattern; does nothing where there is none.
    public mutating func unregister(_ handler: Handler, at pattern: LocationPattern) {
        unregister(at: pattern) { $0 == handler }
    }
}

extension LocationTable: Sendable where Handler: Sendable {}
extension LocationTable.Match: Sendable where Handler: Sendable {}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A login's place at a resource: a method and a path of its server.
public struct ResourceKey: Sendable, Hashable {
    /// The method and the path, without a query.
    public var resource: String
    /// With the scope: a session of another one, won earlier, says nothing of this.
    public var session: SessionKey

    /// A place.
    public init(resource: String, session: SessionKey) {
        self.resource = resource
        self.session = session
    }
}

/// A session's use that a resource refused.
public struct RefusedUse: Sendable, Equatable {
    /// The resource.
    public var place: ResourceKey
    /// The session's generation.
    public var generation: UInt64

    /// A use.
    public init(place: ResourceKey, generation: UInt64) {
        self.place = place
        self.generation = generation
    }
}

/// Refusals by resources of sessions that were just won, or that serve elsewhere: for 30 s they go to the caller as they came, without
/// another login (CONTRIBUTING, rule 4).
public struct ResourceRefusals: Sendable {
    private struct Entry {
        /// The time of the refusal, in milliseconds since 1970.
        var at: Int64
        /// The first generation whose refusal needs no other login.
        var from: UInt64
        /// True if a session just won was refused, so that a request without any needs no login either.
        var isConfirmed: Bool

        /// A clock that was set back ends it, too.
        func stands(at now: Int64) -> Bool { at <= now && now.saturatingSubtract(at) < ResourceRefusals.span }
    }

    private static let span: Int64 = 30_000
    private static let most = 1_000
    private var entries: [ResourceKey: Entry] = [:]
    /// The same places in the order in which they were entered.
    private var order: [ResourceKey] = []

    /// None.
    public init() {}

    /// True if none is remembered.
    public var isEmpty: Bool { entries.isEmpty }

    /// Returns whether a challenge at `place`, to a request with the session of `generation` (0: without one), is an answer for the caller.
    public mutating func passes(_ place: ResourceKey, generation: UInt64, now: Int64) -> Bool {
        guard let entry = entries[place], entry.stands(at: now) else { return false }
        guard generation != 0 else { return entry.isConfirmed }
        guard generation >= entry.from else { return false }
        entries[place]?.isConfirmed = true
        return true
    }

    /// A login begins because `use` was refused. If what it wins is refused there as well, that is no reason for a third.
    public mutating func noteLogin(after use: RefusedUse, now: Int64) {
        if let entry = entries[use.place], entry.stands(at: now) { return }
        enter(Entry(at: now, from: use.generation &+ 1, isConfirmed: false), at: use.place)
    }

    /// A session that was just won, or that serves elsewhere, was refused.
    public mutating func noteRefusal(_ use: RefusedUse, now: Int64) {
        var from = use.generation
        if let entry = entries[use.place], entry.stands(at: now) { from = min(from, entry.from) }
        enter(Entry(at: now, from: from, isConfirmed: true), at: use.place)
    }

    /// A session was accepted at `place`.
    public mutating func forget(_ place: ResourceKey) {
        guard entries.removeValue(forKey: place) != nil else { return }
        order.removeAll { $0 == place }
    }

    private mutating func enter(_ entry: Entry, at place: ResourceKey) {
        if entries.updateValue(entry, forKey: place) == nil { order.append(place) }
        guard order.count > Self.most else { return }
        // The oldest quarter at once, so that this costs little on average.
        for old in order.prefix(Self.most / 4) { entries[old] = nil }
        order.removeFirst(Self.most / 4)
    }
}

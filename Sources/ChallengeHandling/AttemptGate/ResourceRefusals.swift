// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Login at a resource: a method and a path of its server.
public struct ResourceKey: Sendable, Hashable {
    /// Method and path, without a query.
    public var resource: String
    /// Session key with its scope, because an earlier session of another scope says nothing about this resource.
    public var session: SessionKey

    /// Creates a key.
    public init(resource: String, session: SessionKey) {
        self.resource = resource
        self.session = session
    }
}

/// Use of a session that a resource refused.
public struct RefusedUse: Sendable, Equatable {
    /// Resource and session key.
    public var key: ResourceKey
    /// Generation of the session.
    public var generation: UInt64

    /// Creates a use.
    public init(key: ResourceKey, generation: UInt64) {
        self.key = key
        self.generation = generation
    }
}

/// Refusals of new sessions, or of sessions that work elsewhere, by single resources.
///
/// For 30 s, they are passed to the caller without another login (CONTRIBUTING, rule 4).
public struct ResourceRefusals: Sendable {
    private struct Entry {
        /// Time of the refusal in ms since 1970.
        var at: Int64
        /// First generation whose refusal needs no other login.
        var from: UInt64
        /// True if a new session was refused, so that a request without a session needs no login either.
        var isConfirmed: Bool

        /// Returns true for 30 s after the refusal; false also after a clock was set back.
        func isActive(at now: Int64) -> Bool { at <= now && now.saturatingSubtract(at) < ResourceRefusals.span }
    }

    private static let span: Int64 = 30_000
    private static let limit = 1_000
    private var entries: [ResourceKey: Entry] = [:]
    /// Keys in the order of their addition.
    private var order: [ResourceKey] = []

    /// Creates an empty list.
    public init() {}

    /// True if no refusal is recorded.
    public var isEmpty: Bool { entries.isEmpty }

    /// Returns true if a challenge at `resource` must be passed to the caller; `generation` is 0 without a session.
    public mutating func passesChallenge(at resource: ResourceKey, generation: UInt64, now: Int64) -> Bool {
        guard let entry = entries[resource], entry.isActive(at: now) else { return false }
        guard generation != 0 else { return entry.isConfirmed }
        guard generation >= entry.from else { return false }
        entries[resource]?.isConfirmed = true
        return true
    }

    /// Records a login after `use` was refused. If the new session is refused too, no third login follows.
    public mutating func recordLogin(after use: RefusedUse, now: Int64) {
        if let entry = entries[use.key], entry.isActive(at: now) { return }
        insert(Entry(at: now, from: use.generation &+ 1, isConfirmed: false), at: use.key)
    }

    /// Records that a new session, or one that works elsewhere, was refused.
    public mutating func recordRefusal(_ use: RefusedUse, now: Int64) {
        var from = use.generation
        if let entry = entries[use.key], entry.isActive(at: now) { from = min(from, entry.from) }
        insert(Entry(at: now, from: from, isConfirmed: true), at: use.key)
    }

    /// Removes the refusals at `resource`, after a session was accepted there.
    public mutating func removeRefusals(at resource: ResourceKey) {
        guard entries.removeValue(forKey: resource) != nil else { return }
        order.removeAll { $0 == resource }
    }

    private mutating func insert(_ entry: Entry, at resource: ResourceKey) {
        if entries.updateValue(entry, forKey: resource) == nil { order.append(resource) }
        guard order.count > Self.limit else { return }
        // A quarter at once, to keep the average cost low.
        for old in order.prefix(Self.limit / 4) { entries[old] = nil }
        order.removeFirst(Self.limit / 4)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The generations of one session that a node has seen, with its sealed session.
struct KnownSessions: Sendable {
    /// Meaning of an event about a generation.
    enum Announcement {
        /// A later session may be at the store.
        case later
        /// The session of this node may have been dropped.
        case ended
        /// Nothing new.
        case known
    }

    /// Latest generation that this node has taken from the other nodes or given to them.
    private(set) var generation: UInt64
    /// Latest generation that is known to be unusable.
    private(set) var refusedGeneration: UInt64 = 0
    /// Sealed session of this node.
    var session: [UInt8]?
    /// Last session that was refused. After an offer whose reply was lost, it may come back under a later generation.
    private(set) var refusedSession: [UInt8]?
    private var announcedGeneration: UInt64 = 0
    private var takenAt = Int64.min

    init(generation: UInt64) { self.generation = generation }

    /// Latest generation that is of no interest.
    var latestGeneration: UInt64 { max(generation, refusedGeneration) }

    /// Returns true for a session later than all known ones that was not refused.
    func isNews(_ session: [UInt8], _ generation: UInt64) -> Bool {
        generation > latestGeneration && session != refusedSession
    }

    /// Adopts a session; returns true if it is as late as any that was announced.
    mutating func takeSession(_ session: [UInt8], _ generation: UInt64, now: Int64) -> Bool {
        self.generation = generation
        self.session = session
        takenAt = now
        return generation >= announcedGeneration
    }

    /// Marks the session of this node as unusable, and all generations up to `generation`.
    mutating func refuseSession(upTo generation: UInt64) {
        refuseGenerations(upTo: generation)
        refusedSession = session ?? refusedSession
        session = nil
    }

    /// Marks generations as unusable.
    mutating func refuseGenerations(upTo generation: UInt64) {
        refusedGeneration = max(refusedGeneration, generation)
    }

    /// Forgets the session of this node, which another node has ended.
    mutating func dropSession() {
        refusedGeneration = latestGeneration
        session = nil
    }

    /// Notes an event about `changed`, and returns its meaning.
    mutating func announce(_ changed: UInt64, now: Int64) -> Announcement {
        let isFirst = changed > announcedGeneration
        announcedGeneration = max(announcedGeneration, changed)
        if changed > generation { return .later }
        // The first event, soon after the session was taken, is that of its publication.
        return changed == generation && (!isFirst || takenAt < now &- 1_000) ? .ended : .known
    }
}

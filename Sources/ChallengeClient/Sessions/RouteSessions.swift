// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import HTTPWire

/// The logins that stand at a route, and the sessions of theirs that are held: one worker's snapshot.
///
/// Renewed only when the directory's version has moved or a session has ended, so that a request on a held session
/// costs two comparisons.
package final class RouteSessions {
    /// One login of the route with the scope asked for here.
    package struct Slot: Sendable {
        /// The login.
        package let login: Authenticator
        /// The scope asked for.
        package let scope: Scope
        /// What its session is held under.
        package let key: SessionKey

        init(login: Authenticator, scope: Scope) {
            self.login = login
            self.scope = scope
            var key = login.key
            key.scope = scope.description
            self.key = key
        }
    }

    /// The logins, in the order in which responses are shown to them.
    package let slots: [Slot]
    /// True if any of them answers challenges, rather than only adding fields.
    let canBeChallenged: Bool
    /// The responses that any of them is shown.
    let filter: ResponseFilter
    /// Whose connections its requests go over.
    let connections: ConnectionGroup
    /// The fields of the sessions held.
    private(set) var fields: SessionFields
    /// Per slot, the generation of the session held; 0 where there is none.
    private(set) var generations: [UInt64]
    /// The slots whose held session is empty: nothing was asked for where their login looked.
    private(set) var emptySlots = SlotSet()
    /// When the first of them is to be renewed, in milliseconds since 1970.
    private(set) var renewAt = Int64.max

    /// When the first of them is to be renewed or ends, in milliseconds since 1970, whatever was done about it.
    private(set) var dueAt = Int64.max

    /// Per slot, the session held.
    private var sessions: [Session?]
    private let noFields: SessionFields
    private var version: UInt64 = 0
    private var renewalPause = Int64.min
    private var endsAt = Int64.max

    init(slots: [Slot]) {
        self.slots = slots
        connections = ConnectionGroup(slots.lazy.map(\.login).filter(\.bindsConnections).map(\.key))
        canBeChallenged = slots.contains { $0.login.trigger.detector != nil }
        filter = slots.compactMap(\.login.trigger.detector).reduce(.statusesOfChallenges) { $0.union($1.filter) }
        noFields = filter.readsBodies ? SessionFields([Session](), limitsCodings: true) : .none
        fields = noFields
        sessions = Array(repeating: nil, count: slots.count)
        generations = Array(repeating: 0, count: slots.count)
    }

    /// Takes a fresh snapshot where the last one may be out of date. `now` in milliseconds since 1970.
    func refresh(from gate: SharedAttemptGate, now: Int64) {
        if version == gate.version, now < endsAt { return }
        if slots.isEmpty { return }
        // Read first: a change during what follows then brings another refresh.
        version = gate.version
        endsAt = .max
        renewAt = .max
        emptySlots = SlotSet()
        for (index, slot) in slots.enumerated() {
            generations[index] = 0
            sessions[index] = nil
            guard let session = gate.held(slot.key), !session.isExpired(at: now) else { continue }
            generations[index] = session.generation
            endsAt = min(endsAt, session.session.expiresAt ?? .max)
            renewAt = min(renewAt, session.renewAt ?? .max)
            sessions[index] = session.session
            if session.session.isEmpty { emptySlots.insert(index) }
        }
        dueAt = min(renewAt, endsAt)
        renewAt = max(renewAt, renewalPause)
        let held = sessions.compactMap(\.self)
        fields = held.isEmpty ? noFields : SessionFields(held, limitsCodings: filter.readsBodies)
    }

    /// The fields of the sessions held and of those that a single exchange tries.
    func fields(trying trials: [(slot: Int, session: HeldSession)]) -> SessionFields {
        var sessions = sessions
        for trial in trials { sessions[trial.slot] = trial.session.session }
        return SessionFields(sessions.compactMap(\.self), limitsCodings: filter.readsBodies)
    }

    /// Returns whether the login of an empty slot looked at another path than that of `target`.
    func lookedElsewhere(_ slot: Int, than target: borrowing ByteQueue) -> Bool {
        guard emptySlots.contains(slot), let path = sessions[slot]?.lookedAt else { return false }
        return target.withSpan { target in
            var index = 0
            for byte in path.utf8 {
                guard index < target.count, target[index] == byte else { return true }
                index += 1
            }
            return index < target.count && target[index] != UInt8(ascii: "?")
        }
    }

    /// The renewal that is due was taken care of: do not ask again at every request, nor when it fails.
    func postponeRenewal(until instant: Int64) {
        renewalPause = instant
        renewAt = instant
    }
}

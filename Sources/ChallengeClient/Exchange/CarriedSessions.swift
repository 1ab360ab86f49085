// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// The sessions carried by one exchange's request, by slot, with their verification state.
struct CarriedSessions {
    /// The logins of the request's route, with this worker's snapshot of their sessions.
    var route: RouteSessions?
    /// The generation last sent per slot; 0 if the slot had no session.
    private var generations: [UInt64] = []
    /// The slots whose session was empty when the request was last sent.
    private var empty = SlotSet()
    /// The slots left out of the request: nothing is asked for there, or no login is possible now.
    private(set) var without = SlotSet()
    /// True if an empty session was found after a challenge and another one was requested.
    private(set) var hasRetriedEmpty = false
    /// The unverified sessions that this exchange tries on behalf of all waiters.
    private(set) var unverifiedSessions: [(slot: Int, session: HeldSession)] = []
    /// The fields that the request was last sent with, even if their sessions have ended since.
    private(set) var sentFields = SessionFields.none
    /// The fields that the request was sent with, if the answer is examined for them.
    var examinedFields: SessionFields? { sentFields.examinesAnswers ? sentFields : nil }
    /// The checks that the answer has to pass.
    var checks: [any AnswerCheck] = []
    /// The session that a login has brought for this exchange.
    var established: HeldSession?
    /// The number of confirmations that had begun when a session of the request was refused.
    var confirmationsBefore: UInt64 = 0
    /// The key of the login for which this exchange goes ahead of others.
    var leads: SessionKey?
    /// True while this exchange waits for the one that has gone ahead.
    var isBehind = false
    /// The failure of the login that this exchange waited for behind another one, which was challenged.
    var sharedFailure: LoginFailure?
    /// The slot of a refused session that led to a login known to the gate.
    var refusedSlot: Int?
    /// The cookies in the answer that belong to the sessions, not to the caller.
    var heldCookies = HeldCookies()

    /// Resets the state for another request.
    mutating func begin(at route: RouteSessions) {
        self.route = route
        // Replaced, not emptied: the array shares storage with the route's, and emptying would copy it.
        generations = []
        empty = SlotSet()
        without = SlotSet()
        hasRetriedEmpty = false
    }

    /// Releases the state of a running exchange.
    mutating func end() {
        refusedSlot = nil
        leads = nil
        isBehind = false
        sharedFailure = nil
        established = nil
        route = nil
        if !unverifiedSessions.isEmpty { unverifiedSessions = [] }
        sentFields = .none
        if !checks.isEmpty { checks = [] }
    }

    // MARK: Sending

    /// Returns the fields of the current sessions and records which were used.
    ///
    /// `omitsConnectionCredential`: sessions that bind a connection count as not sent, so that a challenge from there
    /// is the first. `userAgent`: the login's, if the request is tried under it.
    mutating func load(
        from gate: SharedAttemptGate, now: Int64, omitsConnectionCredential: Bool, as userAgent: String? = nil
    ) -> SessionFields {
        guard let route else { return .none }
        route.refresh(from: gate, now: now)
        var fields = route.fields
        generations = route.generations
        empty = route.emptySlots
        if !unverifiedSessions.isEmpty || userAgent != nil {
            fields = route.fields(trying: unverifiedSessions, as: userAgent)
            for unverified in unverifiedSessions { generations[unverified.slot] = unverified.session.generation }
        }
        if omitsConnectionCredential {
            for slot in generations.indices where route.slots[slot].login.bindsConnections { generations[slot] = 0 }
        }
        sentFields = fields
        if !heldCookies.isEmpty { heldCookies = HeldCookies() }
        if !checks.isEmpty { checks = [] }
        return fields
    }

    /// Omits the session of `slot` from the request; a challenge is answered when it comes.
    mutating func omitSession(_ slot: Int) { without.insert(slot) }

    /// Records that an empty session of `slot` was found after a challenge.
    mutating func retryEmpty(_ generation: UInt64, in slot: Int) {
        hasRetriedEmpty = true
        while generations.count <= slot { generations.append(0) }
        generations[slot] = generation
    }

    // MARK: Unverified sessions

    /// Returns true if this exchange tries the unverified session of `slot`.
    func isTrying(_ slot: Int) -> Bool { unverifiedSessions.contains { $0.slot == slot } }

    /// Adds an unverified session that this exchange tries on behalf of all waiters.
    mutating func tryOut(_ session: HeldSession, in slot: Int) {
        unverifiedSessions.removeAll { $0.slot == slot }
        unverifiedSessions.append((slot, session))
    }

    /// Removes and returns the unverified session of `slot`.
    mutating func takeUnverified(of slot: Int) -> HeldSession? {
        guard let index = unverifiedSessions.firstIndex(where: { $0.slot == slot }) else { return nil }
        return unverifiedSessions.remove(at: index).session
    }

    // MARK: Sent sessions

    /// Returns the generation last sent for `slot`, or `nil` if none was sent.
    func sent(_ slot: Int) -> UInt64? {
        generations.indices.contains(slot) && generations[slot] != 0 ? generations[slot] : nil
    }

    /// Returns true if the session of `slot` has ended since the request was sent, or was replaced: a challenge to it
    /// only asks for the current one (CONTRIBUTING, rule 5).
    func isOutdated(_ slot: Int, by gate: SharedAttemptGate) -> Bool {
        guard let carried = carried(slot), let key = route?.slots[slot].key else { return false }
        return gate.read { $0.sessions.isOutdated(key, generation: carried) }
    }

    /// Returns true if a login has brought a session for this exchange that has not expired.
    func hasEstablished(now: Int64) -> Bool { established.map { !$0.isExpired(at: now) } ?? false }

    /// Returns true if a session that the request carries is no longer the held one. Sessions that it tries do not
    /// count.
    func hasEnded(by gate: SharedAttemptGate, now: Int64) -> Bool {
        guard let route else { return false }
        route.refresh(from: gate, now: now)
        return generations.indices.contains { slot in
            generations[slot] != 0 && generations[slot] != route.generations[slot] && !isTrying(slot)
        }
    }

    /// Returns `sent(slot)`, or `nil` if that session was empty and added nothing to the request.
    func carried(_ slot: Int) -> UInt64? { empty.contains(slot) ? nil : sent(slot) }

    /// Returns the rejected generation of `slot`: a refused one, or an empty one from a login at another path than
    /// `target`.
    func rejected(_ slot: Int, at target: borrowing ByteQueue) -> UInt64? {
        if let generation = sent(slot) { return generation }
        guard let route, route.wasTriedElsewhere(slot, than: target) else { return nil }
        return route.generations[slot]
    }

    /// True if the request carried a session that other requests may use up.
    var carriesSpendable: Bool { sentFields.wearsOut }

    /// Returns true if a challenge of `slot` may concern the resource, not the carried session.
    func carriesConfirmable(_ slot: Int) -> Bool {
        carried(slot) != nil && route?.slots[slot].login.confirmsSessions == true
    }
}

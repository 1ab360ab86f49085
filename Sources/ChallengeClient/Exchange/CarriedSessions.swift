// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// The sessions that one exchange's request carries, by the slots of its route, and what was learned of them.
struct CarriedSessions {
    /// The logins at the request's route, with this worker's snapshot of their sessions.
    var route: RouteSessions?
    /// Per slot, the generation of the session that the request was last sent with; 0 for none.
    private var generations: [UInt64] = []
    /// The slots whose session was empty when the request was last sent.
    private var empty = SlotSet()
    /// The slots that the request goes without: nothing is asked for there, or no login can be had now.
    private(set) var without = SlotSet()
    /// True if an empty session was met after a challenge, and another one asked for.
    private(set) var hasPassedEmpty = false
    /// The unverified sessions that this exchange tries for all.
    private(set) var trials: [(slot: Int, session: HeldSession)] = []
    /// The fields that the request was sent with, if something is to be learned from its answer.
    private(set) var attentive: SessionFields?
    /// The proofs that the answer has to bring.
    var checks: [any AnswerCheck] = []
    /// The slot of a refused session because of which a login has begun that the gate knows of.
    var refusedSlot: Int?
    /// The cookies in the answer that are the sessions', and not the caller's.
    var heldCookies = HeldCookies()

    /// Begins with another request.
    mutating func begin(at route: RouteSessions) {
        self.route = route
        // Not emptied: it shares the route's memory, and that would be copied.
        generations = []
        empty = SlotSet()
        without = SlotSet()
        hasPassedEmpty = false
    }

    /// Forgets what only a running exchange needs. Returns whether the request was signed.
    mutating func end() -> Bool {
        refusedSlot = nil
        route = nil
        if !trials.isEmpty { trials = [] }
        guard attentive != nil else { return false }
        attentive = nil
        checks = []
        return true
    }

    // MARK: Sending

    /// Takes the fields of the sessions that are held now. `goesUnbound`: without what binds a connection, so that a challenge that
    /// comes now is the first.
    mutating func load(from gate: SharedAttemptGate, now: Int64, goesUnbound: Bool) -> SessionFields {
        guard let route else { return .none }
        route.refresh(from: gate, now: now)
        var fields = route.fields
        generations = route.generations
        empty = route.emptySlots
        if !trials.isEmpty {
            fields = route.fields(trying: trials)
            for trial in trials { generations[trial.slot] = trial.session.generation }
        }
        if goesUnbound {
            for slot in generations.indices where route.slots[slot].login.bindsConnections { generations[slot] = 0 }
        }
        attentive = fields.isAttentive ? fields : nil
        if !heldCookies.isEmpty { heldCookies = HeldCookies() }
        if !checks.isEmpty { checks = [] }
        return fields
    }

    /// The request goes without the session of `slot`; what it meets is answered then.
    mutating func goWithout(_ slot: Int) { without.insert(slot) }

    /// An empty session of `slot` was met after a challenge.
    mutating func passEmpty(_ generation: UInt64, in slot: Int) {
        hasPassedEmpty = true
        while generations.count <= slot { generations.append(0) }
        generations[slot] = generation
    }

    // MARK: Unverified sessions

    /// Returns whether this exchange tries the session of `slot`.
    func isTrying(_ slot: Int) -> Bool { trials.contains { $0.slot == slot } }

    /// This exchange tries `session` for all.
    mutating func tryOut(_ session: HeldSession, in slot: Int) {
        trials.removeAll { $0.slot == slot }
        trials.append((slot, session))
    }

    /// Nobody here tries the session of `slot` any more. Returns which one that was.
    mutating func takeTrial(of slot: Int) -> HeldSession? {
        guard let index = trials.firstIndex(where: { $0.slot == slot }) else { return nil }
        return trials.remove(at: index).session
    }

    // MARK: What was sent

    /// The session of `slot` that the request was last sent with, by its generation; `nil` for none.
    func sent(_ slot: Int) -> UInt64? {
        generations.indices.contains(slot) && generations[slot] != 0 ? generations[slot] : nil
    }

    /// As `sent`; `nil` also for an empty session, of which the request carried nothing.
    func carried(_ slot: Int) -> UInt64? { empty.contains(slot) ? nil : sent(slot) }

    /// The generation of `slot` that is no good: refused, or empty from a look at another path than `target`.
    func rejected(_ slot: Int, at target: borrowing ByteQueue) -> UInt64? {
        if let generation = sent(slot) { return generation }
        guard let route, route.lookedElsewhere(slot, than: target) else { return nil }
        return route.generations[slot]
    }

    /// True if the request carried a session that others may use up.
    var carriesSpendable: Bool { attentive?.wearsOut == true }

    /// Returns whether a challenge of `slot` may be about the resource rather than about the session that the request carried.
    func carriesConfirmable(_ slot: Int) -> Bool {
        carried(slot) != nil && route?.slots[slot].login.confirmsSessions == true
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import EventLoop
internal import HTTPWire

/// The logins at a route and their held sessions: one worker's snapshot.
///
/// Refreshed only after the gate's version has changed or a session has expired, so that a request with a held session
/// costs two comparisons.
package final class RouteSessions {
    /// One login of the route with the scope requested here.
    package struct Slot: Sendable {
        /// The login.
        package let login: Authenticator
        /// The requested scope.
        package let scope: Scope
        /// The key of its session.
        package let key: SessionKey

        init(login: Authenticator, scope: Scope) {
            self.login = login
            self.scope = scope
            var key = login.key
            key.scope = scope.description
            self.key = key
        }
    }

    /// The logins, in the order in which they examine responses.
    package let slots: [Slot]
    /// True if bodies may be needed again: a login answers challenges, or a signature depends on the body.
    let mayNeedBodies: Bool
    /// The slots whose challenge may be behind an answer that does not show it.
    let pageSlots: [Int]
    /// True if a session is required before anything is sent.
    let hasLoginsAhead: Bool
    /// True if `aws-chunked` bodies are decoded.
    let decodesChunks: Bool
    /// True if a session changes bodies, which are then read whole first.
    let changesBodies: Bool
    /// The responses that any login examines.
    let filter: ResponseFilter
    /// True if servers may bind connections to a session of the route.
    let bindsConnections: Bool
    /// The fields of the held sessions.
    private(set) var fields: SessionFields
    /// The generation of the held session per slot; 0 if no session is held.
    private(set) var generations: [UInt64]
    private let allSlots: [Int]
    /// The slots without a held session.
    private var openSlots: [Int]
    /// Those of them whose session every request needs.
    private var openSlotsAhead: [Int]
    /// Those of them whose challenge may come, and of which nothing is known yet.
    private(set) var coldSlots: [Int] = []
    /// The slots whose held session is empty: nothing was asked for at the path of their login.
    private(set) var emptySlots = SlotSet()
    /// The earliest renewal time of the held sessions, in milliseconds since 1970.
    private(set) var renewAt = Int64.max

    /// The earliest renewal or expiry time, regardless of postponed renewals, in milliseconds since 1970.
    private(set) var dueAt = Int64.max

    /// The earliest instant at which accepted answers are recorded again; `never` without a session.
    ///
    /// Not for each request, so that the hot path has one comparison.
    var recordsFrom = LoopInstant.never

    /// The held session per slot.
    private var sessions: [Session?]
    private var acceptances: [SessionAcceptance?]
    private let noFields: SessionFields
    private var version: UInt64 = 0
    private var renewalPause = Int64.min
    private var endsAt = Int64.max

    init(slots: [Slot]) {
        self.slots = slots
        bindsConnections = slots.contains { $0.login.bindsConnections }
        mayNeedBodies = slots.contains { $0.login.trigger.detector != nil || $0.login.signsBodies }
        changesBodies = slots.contains { $0.login.changesBodies }
        decodesChunks = slots.contains { $0.login.decodesChunks }
        let unmodified = ExaminedResponse(status: 304, url: WebURL(origin: Origin(scheme: .http, host: ""), path: "/"))
        pageSlots = slots.indices.filter { slots[$0].login.trigger.detector?.mayConceal(unmodified) == true }
        hasLoginsAhead = slots.contains { $0.login.isAhead }
        filter = slots.compactMap(\.login.trigger.detector).reduce(.statusesOfChallenges) { $0.union($1.filter) }
        noFields = filter.readsBodies ? SessionFields([Session](), limitsCodings: true) : .none
        fields = noFields
        sessions = Array(repeating: nil, count: slots.count)
        acceptances = Array(repeating: nil, count: slots.count)
        generations = Array(repeating: 0, count: slots.count)
        allSlots = Array(slots.indices)
        openSlots = allSlots
        openSlotsAhead = slots.indices.filter { slots[$0].login.isAhead }
    }

    /// Takes a fresh snapshot if the last one may be outdated. `now` in milliseconds since 1970.
    func refresh(from gate: SharedAttemptGate, now: Int64) {
        if version == gate.version, now < endsAt { return }
        if slots.isEmpty { return }
        // Read first: a change during the rest then causes another refresh.
        version = gate.version
        endsAt = .max
        renewAt = .max
        emptySlots = SlotSet()
        openSlots.removeAll(keepingCapacity: true)
        openSlotsAhead.removeAll(keepingCapacity: true)
        coldSlots.removeAll(keepingCapacity: true)
        for (index, slot) in slots.enumerated() {
            generations[index] = 0
            sessions[index] = nil
            acceptances[index] = nil
            guard let session = gate.held(slot.key), !session.isExpired(at: now) else {
                openSlots.append(index)
                if slot.login.isAhead {
                    openSlotsAhead.append(index)
                } else if slot.login.trigger.detector != nil, slot.login.refusal == nil {
                    coldSlots.append(index)
                }
                continue
            }
            generations[index] = session.generation
            endsAt = min(endsAt, session.session.expiresAt ?? .max)
            renewAt = min(renewAt, session.renewAt ?? .max)
            sessions[index] = session.session
            acceptances[index] = session.acceptance
            if session.session.isEmpty { emptySlots.insert(index) }
        }
        // A held session shows that the server is not new.
        if openSlots.count < slots.count { coldSlots.removeAll(keepingCapacity: true) }
        recordsFrom = sessions.contains { $0?.isEmpty == false } ? LoopInstant(nanoseconds: 0) : .never
        dueAt = min(renewAt, endsAt)
        renewAt = max(renewAt, renewalPause)
        let held = sessions.compactMap(\.self)
        fields =
            held.isEmpty
            ? noFields : SessionFields(held, group: group(of: generations), limitsCodings: filter.readsBodies)
    }

    /// Returns the session and the record of its acceptances, if `slot` holds that generation.
    func held(_ slot: Int, generation: UInt64?) -> (session: Session, acceptance: SessionAcceptance)? {
        guard let generation, generations.indices.contains(slot), generations[slot] == generation,
            let session = sessions[slot], let acceptance = acceptances[slot]
        else { return nil }
        return (session, acceptance)
    }

    /// Returns the fields of the held sessions and of unverified ones tried by one exchange; under `userAgent`, if it is not nil.
    func fields(
        trying unverifiedSessions: [(slot: Int, session: HeldSession)], as userAgent: String? = nil
    ) -> SessionFields {
        var (sessions, generations) = (sessions, generations)
        for unverified in unverifiedSessions {
            sessions[unverified.slot] = unverified.session.session
            generations[unverified.slot] = unverified.session.generation
        }
        return SessionFields(
            sessions.compactMap(\.self), userAgent: userAgent, group: group(of: generations),
            limitsCodings: filter.readsBodies)
    }

    /// Returns the group of the sessions with these generations by slot.
    private func group(of generations: [UInt64]) -> ConnectionGroup? {
        guard bindsConnections else { return nil }
        return ConnectionGroup(
            slots.indices.filter { slots[$0].login.bindsConnections && generations[$0] != 0 }.map {
                (slots[$0].key, generations[$0])
            })
    }

    /// Returns true if an empty slot's login was made for another path than `target`'s.
    func wasTriedElsewhere(_ slot: Int, than target: borrowing ByteQueue) -> Bool {
        guard emptySlots.contains(slot), let path = sessions[slot]?.probedPath else { return false }
        return target.withSpan { target in
            var index = 0
            for byte in path.utf8 {
                guard index < target.count, target[index] == byte else { return true }
                index += 1
            }
            return index < target.count && target[index] != UInt8(ascii: "?")
        }
    }

    /// Postpones the due renewal, which was handled: not at every request, nor after a failure.
    func postponeRenewal(until instant: Int64) {
        renewalPause = instant
        renewAt = instant
    }
}

/// A set of a route's slots below 64 as bits: copied without reference counting.
struct SlotSet: Equatable {
    private var bits: UInt64 = 0

    /// Creates an empty set.
    init() {}

    func contains(_ slot: Int) -> Bool { Self.canHold(slot) && bits & (1 << UInt64(slot)) != 0 }

    /// Adds `slot`, if it can be held.
    mutating func insert(_ slot: Int) {
        if Self.canHold(slot) { bits |= 1 << UInt64(slot) }
    }

    /// Returns true if a set can hold `slot`.
    static func canHold(_ slot: Int) -> Bool { (0..<64).contains(slot) }
}

/// The time at which the sessions of a route have to be established.
enum LoginTiming {
    /// After a challenge, except for logins configured before every request.
    case afterChallenge
    /// Before the request, which has a body or is unsafe (RFC 9110 §9.2.1). Must not be carried out twice.
    case beforeRequest
    /// Before such a request, whose body has unknown length and may exceed the replay limit.
    case beforeUnmeasuredBody
    /// Before such a request, whose body exceeds the replay limit: it cannot be sent a second time.
    case beforeLongBody
    /// Before a request whose answer may conceal a login page: HEAD, or one with `Range` or a precondition.
    case beforeConcealedPage
    /// Before the answer to an auth request, whose challenge would go to the other proxy.
    case beforeAnswer

    /// True if a login that was empty at another path is repeated for this one.
    var retriesEmptySessions: Bool { self == .beforeLongBody || self == .beforeUnmeasuredBody }
}

extension RouteSessions {
    /// Returns the first slot whose session every request needs, and which has ended since it was last looked for.
    func ended(for request: ExchangeRequest, carrying sessions: CarriedSessions) -> Int? {
        for slot in openSlotsAhead {
            if sessions.isTrying(slot) || sessions.without.contains(slot) { continue }
            if request.keepsCredentials, slots[slot].login.trigger.detector != nil { continue }
            return slot
        }
        return nil
    }

    /// Records that requests without a session of `slot` need not wait for each other, until the sessions change.
    func recordOpen(_ slot: Int) { coldSlots.removeAll { $0 == slot } }

    /// Returns the first slot whose session must be established before the request is sent.
    ///
    /// Excludes sessions that the exchange tries, and slots that it omits; see `CarriedSessions`.
    func missing(
        for request: ExchangeRequest, at target: borrowing ByteQueue, _ order: LoginTiming, by gate: SharedAttemptGate,
        now: Int64, carrying sessions: CarriedSessions
    ) -> Int? {
        refresh(from: gate, now: now)
        // Usually none: a request costs the same for few logins and for many.
        let candidates =
            switch order {
            case .afterChallenge: openSlotsAhead
            case .beforeLongBody, .beforeUnmeasuredBody: allSlots
            case .beforeRequest, .beforeConcealedPage, .beforeAnswer: openSlots
            }
        for slot in candidates where !sessions.isTrying(slot) {
            let isHeld = generations[slot] != 0
            if isHeld, !order.retriesEmptySessions || !wasTriedElsewhere(slot, than: target) { continue }
            let login = slots[slot].login
            // The caller provides the authorization itself; the configured fixed fields are sent as well.
            if request.keepsCredentials, login.trigger.detector != nil { continue }
            if sessions.without.contains(slot) { continue }
            if !isHeld, login.isAhead { return slot }
            // Such a caller may not be challenged here.
            guard login.refusal == nil else { continue }
            switch order {
            case .afterChallenge:
                continue
            case .beforeAnswer:
                return slot
            case .beforeLongBody:
                if SlotSet.canHold(slot) { return slot }
            case .beforeConcealedPage where !pageSlots.contains(slot):
                continue
            case .beforeConcealedPage, .beforeRequest, .beforeUnmeasuredBody:
                // A MobileFirst resource names its scope, and carries nothing out until granted.
                if login.isOfUpstream, slots[slot].scope.isEmpty { continue }
                let key = slots[slot].key
                // This route has lately refused the session, and so the login for it (CONTRIBUTING, rule 4).
                let isRefused =
                    gate.mayRefuse && gate.isRefused(ResourceKey(of: request, target, session: key))
                if SlotSet.canHold(slot), !isRefused { return slot }
            }
        }
        return nil
    }
}

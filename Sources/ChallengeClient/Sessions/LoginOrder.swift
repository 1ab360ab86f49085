// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// When the sessions of a route have to be there.
enum LoginOrder {
    /// After a challenge, but for logins that go ahead of every request.
    case afterChallenge
    /// Before the request: it has a body, or is not safe (RFC 9110 §9.2.1), and must not be carried out twice.
    case beforeRequest
    /// The same, and nobody knows how long its body is: it may be longer than what is kept.
    case beforeUnmeasuredBody
    /// The same, and its body is longer than what is kept: it cannot be sent a second time.
    case beforeLongBody
    /// Before the answer to a question of another proxy: nobody here meets the challenge otherwise.
    case beforeAnswer

    /// True if a login that found nothing asked for at another path looks once more.
    var looksAgain: Bool { self == .beforeLongBody || self == .beforeUnmeasuredBody }
}

extension RouteSessions {
    /// Returns the first slot whose session has to be won before anything is sent; `nil` if none has.
    ///
    /// Neither those that the exchange tries, nor those whose login brought nothing; see `CarriedSessions`.
    func missing(
        for request: ExchangeRequest, at target: borrowing ByteQueue, _ order: LoginOrder, by gate: SharedAttemptGate,
        now: Int64, carrying sessions: CarriedSessions
    ) -> Int? {
        refresh(from: gate, now: now)
        for slot in slots.indices where !sessions.isTrying(slot) {
            let isHeld = generations[slot] != 0
            if isHeld, !order.looksAgain || !lookedElsewhere(slot, than: target) { continue }
            let login = slots[slot].login
            // The caller sees to its authorization itself; fixed fields of ours go along.
            if request.keepsCredentials, login.trigger.detector != nil { continue }
            if sessions.without.contains(slot) { continue }
            if !isHeld, login.isAhead { return slot }
            // Perhaps nothing is asked of such a caller here.
            guard login.refusal == nil else { continue }
            switch order {
            case .afterChallenge:
                continue
            case .beforeAnswer:
                return slot
            case .beforeLongBody:
                if SlotSet.canHold(slot) { return slot }
            case .beforeRequest, .beforeUnmeasuredBody:
                // A MobileFirst resource says what scope it wants, and carries nothing out until it has it.
                if login.isOfUpstream, slots[slot].scope.isEmpty { continue }
                let key = slots[slot].key
                // Lately this route has refused the session, and so the login for it (CONTRIBUTING, rule 4).
                let isRefused =
                    gate.mayRefuse && gate.isRefused(ResourceKey(of: request, target, session: key))
                if SlotSet.canHold(slot), !isRefused { return slot }
            }
        }
        return nil
    }
}

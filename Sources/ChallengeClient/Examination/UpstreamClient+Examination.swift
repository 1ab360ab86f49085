// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

/// What an examination found.
struct Finding {
    /// What the exchange is to make of it.
    var verdict: ExchangeMachine.Verdict
    /// The use of a session that was refused, to be remembered if the refusal goes to the caller.
    var refusal: RefusedUse?
    /// The route with the scope that the response named.
    var route: RouteSessions?
}

extension StandingLogin.Trigger {
    /// What the answer says to a login with this trigger.
    func examine(_ answer: ExaminedAnswer) -> ResourceVerdict {
        switch self {
        case .ahead:
            return .notAChallenge
        case .mobileFirst:
            return MobileFirstResource.examine(status: answer.status, fields: answer.fields)
        case .bearer(let realm):
            let verdict = MobileFirstResource.examine(status: answer.status, fields: answer.fields)
            guard verdict != .conflict else { return .notAChallenge }
            guard let realm else { return verdict }
            let challenges = (try? AuthenticationChallenge.parse(answer.fields[values: .wwwAuthenticate])) ?? []
            return challenges.contains { $0.isScheme("Bearer") && $0["realm"] == realm } ? verdict : .notAChallenge
        }
    }
}

extension UpstreamClient {
    /// What a response that may be a challenge means for the exchange.
    func examine(
        _ answer: ExaminedAnswer, request: ExchangeRequest, target: borrowing ByteQueue, route: RouteSessions,
        used: [UInt64]
    ) -> Finding {
        for (slot, standing) in route.slots.enumerated() {
            let generation = slot < used.count ? used[slot] : 0
            switch standing.login.trigger.examine(answer) {
            case .notAChallenge:
                continue
            case .conflict:
                return Finding(verdict: .conflict)
            case .tokenMissing, .tokenInvalid:
                guard generation != 0 else {
                    return Finding(verdict: .challenge(slot: slot, canGrow: false))
                }
                let refusal = RefusedUse(
                    route: RouteKey(method: request.method, target: target), slot: slot, generation: generation)
                if refusals.contains(refusal, now: runtime.loop.now) { return Finding(verdict: .pass) }
                return Finding(verdict: .challenge(slot: slot, canGrow: false), refusal: refusal)
            case .insufficientScope(let words):
                let asked = standing.scope
                let grown = asked.union(Scope(words))
                // What it lacks was asked for and granted already: another login would bring the same.
                guard grown != asked || generation == 0 else { return Finding(verdict: .pass) }
                var slots = route.slots
                slots[slot] = .init(login: standing.login, scope: grown)
                let key = RouteKey(method: request.method, target: target)
                let route = routes.equal(to: slots) ?? RouteSessions(slots: slots)
                routes.remember(route, for: key)
                plan.learned.learn(LearnedScopes.Lesson(slot: slot, scope: grown), for: key)
                return Finding(verdict: .challenge(slot: slot, canGrow: true), route: route)
            }
        }
        return Finding(verdict: .pass)
    }

    /// A session just won was refused at this route: it is not won again for it for a while (CONTRIBUTING, rule 4).
    func remember(_ refusal: RefusedUse, now: LoopInstant) { refusals.insert(refusal, now: now) }
}

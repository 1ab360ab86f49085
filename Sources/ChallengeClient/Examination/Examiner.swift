// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

/// The result of one examination.
struct Finding {
    /// The demand of the answer.
    var challenge = Challenge.pass
    /// The slot of the challenged login; meaningless if the answer passes.
    var slot = 0
    /// True if another round is allowed right after a login: more scope or a fresh session is asked for.
    var mayRepeat = false
    /// The refused use of a session, recorded if the refusal is passed to the caller.
    var refusal: RefusedUse?
    /// True if the session is to be confirmed elsewhere before another one is established.
    var isConfirmable = false
    /// True if a challenge passes because this route is known to refuse the session.
    var isKnownRefusal = false
    /// True if the answer passes without its page.
    var concealsPage = false
    /// The route with the scope that the response named.
    var route: RouteSessions?
}

/// Examines responses by the challenge detectors of their route and the state of its sessions.
struct Examiner {
    let gate: SharedAttemptGate
    let routes: RouteTable
    let wallClock: () -> Int64

    /// Examines a response that may be a challenge.
    func examine(
        _ response: ExaminedResponse, request: ExchangeRequest, target: borrowing ByteQueue, sentAt: LoopInstant,
        route: RouteSessions, sessions: CarriedSessions
    ) -> Finding {
        var needsBody = false
        for (slot, authenticator) in route.slots.enumerated() {
            guard let detector = authenticator.login.trigger.detector else { continue }
            // An empty session does not count: it added nothing to the request.
            let generation = sessions.carried(slot) ?? 0
            let challenge = detector.examine(response, hasSession: generation != 0)
            switch challenge {
            case .pass:
                continue
            case .needsBody:
                needsBody = needsBody || response.body == nil
            case .replay, .stale:
                return Finding(challenge: challenge, slot: slot, mayRepeat: true)
            case .refused:
                return finding(challenge, slot, authenticator.key, generation, request, target)
            case .challenged(let words):
                // The words become part of a key, a token request and a log line.
                guard Scope.isShort(words) else { return Finding() }
                let asked = authenticator.scope
                var grown = asked.union(Scope(words))
                // The scope would have been asked for anyway: there is nothing to record.
                guard grown != asked else {
                    // The missing scope was requested and granted already: another login would have the same result.
                    if !words.isEmpty, generation != 0 { return Finding() }
                    var found = finding(challenge, slot, authenticator.key, generation, request, target)
                    // The session that this exchange has waited for is refused by the resource, which is noted.
                    guard found.refusal != nil, sessions.established?.generation != generation,
                        !sessions.carriesSpendable, !authenticator.login.confirmsSessions
                    else { return found }
                    switch answer(of: authenticator.key, generation, to: response, sentAt) {
                    case .confirm: found.isConfirmable = true
                    case .pass: return Finding(isKnownRefusal: true)
                    case .renew: break
                    }
                    return found
                }
                // A resource that names other words each time would make the scope grow without bound.
                if !grown.isShort { grown = authenticator.login.defaultScope.union(Scope(words)) }
                let key = RouteKey(method: request.method, target: target)
                let route = routes.learn(grown, in: slot, of: route, for: key)
                return Finding(challenge: challenge, slot: slot, mayRepeat: true, route: route)
            }
        }
        return Finding(challenge: needsBody ? .needsBody : .pass)
    }

    /// Returns the consequence of the refusal of a held session (CONTRIBUTING, rule 4).
    private func answer(
        of key: SessionKey, _ generation: UInt64, to response: ExaminedResponse, _ sentAt: LoopInstant
    ) -> RefusalAnswer {
        let now = wallClock()
        let isRead = response.method.isRetrieval
        return gate.change {
            $0.sessions.answerRefusal(
                key, generation: generation, at: response.url.path, isRead: isRead, sentAt: sentAt.nanoseconds, now: now
            )
        }
    }

    /// Returns a challenge or refusal, or a pass for a known refusal of this route.
    private func finding(
        _ challenge: Challenge, _ slot: Int, _ key: SessionKey, _ generation: UInt64, _ request: ExchangeRequest,
        _ target: borrowing ByteQueue
    ) -> Finding {
        let resource = ResourceKey(of: request, target, session: key)
        let now = wallClock()
        if gate.change({ $0.passesChallenge(at: resource, generation: generation, now: now) }) {
            return Finding(isKnownRefusal: true)
        }
        return Finding(
            challenge: challenge, slot: slot,
            refusal: generation == 0 ? nil : RefusedUse(key: resource, generation: generation))
    }
}

extension ResourceKey {
    /// Creates the key of recorded refusals of the session of `key` for a request.
    init(of request: ExchangeRequest, _ target: borrowing ByteQueue, session key: SessionKey) {
        self.init(resource: RouteKey(method: request.method, target: target).text, session: key)
    }
}

extension ByteQueue {
    /// The whole content as text.
    var text: String { withSpan { $0.text(ByteRange(start: 0, end: $0.count)) } }
}

extension UpstreamPlan {
    /// Returns the URL of a request's target.
    func address(of target: borrowing ByteQueue) -> WebURL {
        let text = target.text
        // Compared as bytes, because a query may begin with a combining character.
        guard let question = text.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return WebURL(origin: base.origin, path: text)
        }
        return WebURL(
            origin: base.origin, path: String(text[..<question]),
            query: String(text[text.utf8.index(after: question)...]))
    }
}

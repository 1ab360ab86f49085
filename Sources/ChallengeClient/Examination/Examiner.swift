// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

/// The result of one examination.
struct Finding {
    /// What the answer asks for.
    var challenge = Challenge.pass
    /// The slot of the login that it asks; of no meaning where it passes.
    var slot = 0
    /// True if a session just won does not speak against another round: it asks for more scope, or for a fresh one.
    var mayRepeat = false
    /// The use of a session that was refused, to be remembered if the refusal goes to the caller.
    var refusal: RefusedUse?
    /// True if a challenge passes because sessions just won were refused at this route.
    var isKnownRefusal = false
    /// The route with the scope that the response named.
    var route: RouteSessions?
}

/// Judges a response for its exchange, in the light of what is known of the route and of its sessions.
struct Examiner {
    let gate: SharedAttemptGate
    let routes: RouteTable
    let wallClock: () -> Int64

    /// What a response that may be a challenge asks for.
    func examine(
        _ response: ExaminedResponse, request: ExchangeRequest, target: borrowing ByteQueue, route: RouteSessions,
        sessions: CarriedSessions
    ) -> Finding {
        var needsBody = false
        for (slot, standing) in route.slots.enumerated() {
            guard let detector = standing.login.trigger.detector else { continue }
            // An empty session is none: the request carried nothing of it.
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
                return finding(challenge, slot, standing.key, generation, request, target)
            case .challenged(let words):
                // A key, a token request and a line of the log are made of them.
                guard Scope.isShort(words) else { return Finding() }
                let asked = standing.scope
                var grown = asked.union(Scope(words))
                // What was to be asked for anyway was not there yet: nothing is learned by that.
                guard grown != asked else {
                    // What it lacks was asked for and granted already: another login would bring the same.
                    if !words.isEmpty, generation != 0 { return Finding() }
                    return finding(challenge, slot, standing.key, generation, request, target)
                }
                // A resource that names other words each time would make the scope grow without end.
                if !grown.isShort { grown = standing.login.defaultScope.union(Scope(words)) }
                let key = RouteKey(method: request.method, target: target)
                let route = routes.learn(grown, in: slot, of: route, for: key)
                return Finding(challenge: challenge, slot: slot, mayRepeat: true, route: route)
            }
        }
        return Finding(challenge: needsBody ? .needsBody : .pass)
    }

    /// A challenge, or the refusal of a session, unless it is known that this route refuses that session.
    private func finding(
        _ challenge: Challenge, _ slot: Int, _ key: SessionKey, _ generation: UInt64, _ request: ExchangeRequest,
        _ target: borrowing ByteQueue
    ) -> Finding {
        let place = ResourceKey(of: request, target, session: key)
        let now = wallClock()
        if gate.change({ $0.passes(place, generation: generation, now: now) }) {
            return Finding(isKnownRefusal: true)
        }
        return Finding(
            challenge: challenge, slot: slot,
            refusal: generation == 0 ? nil : RefusedUse(place: place, generation: generation))
    }
}

extension ResourceKey {
    /// The resource of a request, as refusals of the session of `key` are remembered for it.
    init(of request: ExchangeRequest, _ target: borrowing ByteQueue, session key: SessionKey) {
        self.init(resource: RouteKey(method: request.method, target: target).text, session: key)
    }
}

extension ByteQueue {
    /// All that it holds, as text.
    var text: String { withSpan { $0.text(ByteRange(start: 0, end: $0.count)) } }
}

extension UpstreamPlan {
    /// The address that a request goes to.
    func address(of target: borrowing ByteQueue) -> WebURL {
        let text = target.text
        // By bytes, as a query may begin with any of them.
        guard let question = text.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return WebURL(origin: base.origin, path: text)
        }
        return WebURL(
            origin: base.origin, path: String(text[..<question]),
            query: String(text[text.utf8.index(after: question)...]))
    }
}

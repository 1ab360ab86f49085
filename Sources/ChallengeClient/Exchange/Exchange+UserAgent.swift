// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire

// Sessions that a server binds to the `User-Agent` of their login, such as those of Calibre-Web, pgAdmin and Tiny Tiny RSS.
extension Exchange {
    /// True if the session of `slot` may have been refused because it came under another `User-Agent` than its login.
    ///
    /// Only for requests without effects: one with effects may have been executed, and its answer only looks like a challenge.
    func mayBeBound(_ slot: Int?, at route: RouteSessions?) -> Bool {
        guard machine.userAgent == .none, let client, let route, let slot,
            request.method.isRetrieval, !request.hasBody, !request.keepsCredentials, !request.isUpgrade,
            !request.isAuthRequest,
            let held = route.held(slot, generation: sessions.carried(slot)), held.session.cookies != nil,
            held.session.use == nil,
            runtime.gate.read({
                $0.sessions.mayTryUserAgent(of: route.slots[slot].key, now: runtime.wallClock())
            })
        else { return false }
        return !sends(userAgent: client.plan.userAgent(of: route.slots[slot].login.name))
    }

    /// Returns true if the request was sent under that `User-Agent`.
    private func sends(userAgent: String) -> Bool {
        let head = FieldSink()
        head.begin(request.methodName.utf8.span, target)
        caller?.writeFields(into: head, overriddenBy: sessions.sentFields, cookies: nil)
        sessions.sentFields.write(into: head)
        defer { head.reset() }
        var isSent = false
        head.forEachField { name, value in
            guard name.text(ByteRange(start: 0, end: name.count)).lowercased() == "user-agent" else { return }
            isSent = value.text(ByteRange(start: 0, end: value.count)) == userAgent
        }
        return isSent
    }

    /// Has the next session of `slot` carry its login's `User-Agent` from the beginning: other requests would end it.
    func suspectUserAgent(of slot: Int) {
        guard let client, let route = sessions.route else { return }
        let login = route.slots[slot]
        let userAgent = client.plan.userAgent(of: login.login.name)
        runtime.gate.change { $0.sessions.suspectUserAgent(userAgent, of: login.key) }
    }

    /// Records the result of the trial: the session of `slot` is bound, or the resource refuses it whoever asks.
    func recordUserAgent(of slot: Int, isAccepted: Bool) {
        guard let client, let route = sessions.route else { return }
        let login = route.slots[slot]
        guard isAccepted else {
            guard finding.challenge != .pass, finding.slot == slot else { return }
            return runtime.gate.change { $0.sessions.releaseUserAgent(of: login.key, now: runtime.wallClock()) }
        }
        let userAgent = client.plan.userAgent(of: login.login.name)
        if runtime.gate.change({ $0.sessions.bindUserAgent(userAgent, of: login.key) }) {
            runtime.services.observer.sessionIsBound(login.key, to: userAgent)
        }
    }
}

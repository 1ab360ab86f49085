// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

// Sub-requests of another proxy: the sessions are won as for any request, but then their fields are the answer.
extension Exchange {
    /// Takes no part in trying a session that the server has not accepted yet: only who sees the answer to a request can say what
    /// it proves. The other proxy sends the request without it, and hands the challenge that it meets to a listener which does.
    func decline(_ session: HeldSession, of slot: Int) -> ExchangeMachine.Action {
        guard let route else { return .doNothing }
        isPartial = true
        runtime.judge(route.slots[slot].key, generation: session.generation, .undecided, ticket: ticket)
        return machine.sessionReady(missing: nil, wonNow: false)
    }

    /// Answers with the fields of the sessions that are held.
    func authorize() -> ExchangeMachine.Action? {
        guard let client, let route, let caller else { return nil }
        // The snapshot is fresh: it was asked a moment ago what is missing in it.
        let now = runtime.wallClock()
        let sessions = route.fields
        if !client.plan.carriesSecrets, !sessions.isEmpty { return machine.failed(.plaintext(of: client.plan)) }
        if now >= route.renewAt { runtime.renew(route, of: client, now: now) }
        var answer = SubrequestAnswer(sessions: sessions, keepsCredentials: request.keepsCredentials)
        answer.lifetime = !isPartial && !sessions.hasSigners ? max(0, route.dueAt &- now) / 1000 : 0
        do throws(LoginFailure) {
            if !request.keepsCredentials { answer.signed = try signed(by: sessions, of: client) }
        } catch {
            return machine.failed(ExchangeError(error))
        }
        if sessions.hasCookies { answer.cookies = sessions.cookies(for: target, to: client.plan.base.origin, now: now) }
        caller.exchangeAuthorizes(answer)
        return machine.answered()
    }

    /// What is made for this one request, of whose body nothing is known but whether there can be one.
    private func signed(
        by sessions: SessionFields, of client: UpstreamClient
    ) throws(LoginFailure) -> [InjectedField] {
        guard sessions.connection == nil else {
            throw LoginFailure(
                .failed, challenge: route?.slots.first { $0.login.bindsConnections }?.login.name ?? "",
                detail: """
                    NTLM authenticates a connection, and the connection to the upstream is the other proxy's. Send such \
                    requests by an ordinary listener.
                    """)
        }
        guard sessions.hasSigners else { return [] }
        let request = SigningRequest(
            method: request.methodName, origin: client.plan.base.origin, target: target.text,
            body: request.method.isSafe || request.method == .delete ? .none : .unread)
        var fields: [InjectedField] = []
        _ = try sessions.sign(request) { fields.append(InjectedField(name: $0, value: $1)) }
        return fields
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

// Answers that do not show their page: to HEAD, parts, and results of preconditions. A login page may be behind them,
// so they are held until the page was asked for. A program would otherwise append the login page to its user's file.
extension Exchange {
    /// Maximum age of a proof that the session works, for an answer that does no lasting harm.
    private static let proofLifetime: UInt64 = 2_000_000_000

    /// True if the answer may conceal a login page.
    var awaitsConcealedPage: Bool {
        guard let route = sessions.route, !route.pageSlots.isEmpty, mayLook else { return false }
        return request.method == .head || caller?.hasConditions == true
    }

    /// True if a GET of the request's address is allowed in its place.
    private var mayLook: Bool {
        guard !request.isCheck, !request.isUpgrade, !request.isAuthRequest, !request.keepsCredentials else {
            return false
        }
        return request.method.isRetrieval && !request.hasBody
    }

    /// Returns true if the answer to a safe request does not show its page.
    func showsNoPage(_ transfer: Transfer) -> Bool {
        switch transfer.answer.status {
        case 206, 304, 412, 416: true
        default: request.method == .head
        }
    }

    /// Records in `answer` if the response may conceal a login page, and if that is known not to be so.
    func recordConcealment(of response: ExaminedResponse, in answer: inout ExaminedAnswer) {
        guard let route = sessions.route, mayLook,
            let slot = route.pageSlots.first(where: {
                route.slots[$0].login.refusal == nil
                    && route.slots[$0].login.trigger.detector?.mayConceal(response) == true
            })
        else { return }
        finding.concealsPage = true
        answer.slot = slot
        answer.concealment = isKnown(response, slot, at: route) ? .known : .open
    }

    /// Returns true if the page of `slot` is not behind the response, or may pass.
    private func isKnown(_ response: ExaminedResponse, _ slot: Int, at route: RouteSessions) -> Bool {
        // What comes right after a login is the resource's answer, and so is what it refuses (CONTRIBUTING, rule 4).
        if machine.establishedSlot == slot { return true }
        let key = route.slots[slot].key
        if runtime.gate.mayRefuse, runtime.gate.isRefused(ResourceKey(of: request, target, session: key)) {
            return true
        }
        // A part is written into a file, and 416 ends its download: no proof is fresh enough for these.
        guard response.status != 206, response.status != 416,
            let held = route.held(slot, generation: sessions.carried(slot))
        else { return false }
        let sent = sentAt.nanoseconds
        return held.acceptance.wasVerified(since: sent > Self.proofLifetime ? sent - Self.proofLifetime : 1)
    }

    /// Asks for the page that the held answer may conceal from the login of `slot`.
    func look(_ slot: Int) {
        guard let client, let route = sessions.route else { return }
        timer.arm(at: runtime.loop.now + client.plan.timeouts.login)
        let status = transfer?.answer.status
        let ticket = ticket
        runtime.looks.look(
            PageLook(
                slot: route.slots[slot], session: route.held(slot, generation: sessions.carried(slot)),
                fields: sessions.sentFields, address: client.plan.address(of: target), plan: client.plan,
                mayShare: status != 206 && status != 416)
        ) { [self] outcome in
            // Reused for another request by now, or over.
            guard self.ticket == ticket, case .looking = machine.state else { return }
            lookEnded(outcome)
        }
    }

    /// Continues after the look for a concealed page.
    func lookEnded(_ outcome: PageLook.Outcome) {
        guard case .looking(let slot) = machine.state, let route = sessions.route else { return }
        switch outcome {
        case .passes: resumeAnswer { $0.perform($0.machine.pageIsAbsent(isKnown: true)) }
        case .asks(let page): resumeAnswer { $0.pageIsFound(page, slot, at: route) }
        case .unknown:
            let status = transfer?.answer.status
            guard status == 206 || status == 416 else {
                return resumeAnswer { $0.perform($0.machine.pageIsAbsent(isKnown: false)) }
            }
            abort(.concealed(from: route.slots[slot].login.name))
        }
    }

    /// Answers the login page behind the held answer. A session that it should have opened is confirmed first.
    private func pageIsFound(_ page: ExaminedResponse, _ slot: Int, at route: RouteSessions) {
        challenge = page
        machine.pageIsFound()
        guard let generation = sessions.carried(slot) else {
            return perform(machine.sessionOver(canReplay: body.canReplay))
        }
        finding.slot = slot
        finding.refusal = RefusedUse(
            key: ResourceKey(of: request, target, session: route.slots[slot].key), generation: generation)
        guard route.slots[slot].login.confirmsSessions else {
            return perform(machine.sessionOver(canReplay: body.canReplay))
        }
        sessions.confirmationsBefore = runtime.gate.read { $0.sessions.confirmations }
        confirm(slot)
    }
}

extension ExchangeError {
    /// Returns the error for a part of a page that may be the login page of `login`.
    fileprivate static func concealed(from login: String) -> ExchangeError {
        ExchangeError(
            LoginFailure(
                .failed, challenge: login,
                detail: """
                    The server sent a part of a page that may be its login page, and no usable answer to a request for the \
                    whole page. Nothing was passed on, so that no file is damaged. Send the request again in a moment.
                    """))
    }
}

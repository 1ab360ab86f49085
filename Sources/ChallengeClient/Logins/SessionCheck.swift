// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import FieldBytes
internal import HTTPTypes
internal import Secrets

/// Confirmation of a session that one resource refused, at other addresses that accepted it (CONTRIBUTING, rule 4).
///
/// Each is asked without the session first: one that asks for nothing proves nothing. No secret of a login is sent.
struct SessionCheck {
    private let held: HeldSession
    private let key: SessionKey
    private let detector: (any ChallengeDetector)?
    private let addresses: [WebURL]

    /// Creates the check of `held`, a session of `slot`, after the refusal `challenge`.
    init(_ held: HeldSession, _ slot: RouteSessions.Slot, _ challenge: ExaminedResponse?) {
        self.held = held
        key = slot.key
        detector = slot.login.trigger.detector
        let isRead = challenge?.method.isRetrieval ?? false
        addresses = held.acceptance.acceptedPaths.filter { !isRead || $0 != challenge?.url.path }.map {
            WebURL(origin: slot.key.origin, path: $0)
        }
    }

    /// Asks the addresses until one decides.
    func run(_ conversation: Conversation) async -> SessionConfirmation {
        for address in addresses {
            guard let asked = await answer(of: address, to: nil, conversation) else { continue }
            guard case .challenged = asked else { continue }
            switch await answer(of: address, to: held.session, conversation) {
            case .challenged, .refused: return .over
            case .pass: return .stillGood
            case .needsBody, .replay, .stale, nil: return .unknown
            }
        }
        return .unknown
    }

    /// Returns the meaning of the answer to a GET with or without the session; `nil` for an unusable one.
    private func answer(
        of address: WebURL, to session: Session?, _ conversation: Conversation
    ) async -> Challenge? {
        var request = SideRequest(method: .get, url: address)
        // Only the head matters, or the beginning of a page.
        request.allowsPartialBody = true
        if let session {
            let signing = SigningRequest(
                method: "GET", origin: address.origin, target: address.target, now: conversation.now())
            guard let signed = try? session.signer?.sign(signing) ?? SignedFields() else { return nil }
            for field in session.fields + signed.fields { request.fields[field.name] = field.value.revealText() }
            if let line = session.cookies?.merged(with: [], for: address, now: conversation.now()) {
                request.fields.set(.cookie, to: line)
            }
        }
        guard let response = try? await conversation.sideRequests.send(request),
            !InconclusiveStatus.contains(response.status)
        else { return nil }
        session?.signer?.learn(status: response.status, fields: response.fields, target: address.target)
        let examined = ExaminedResponse(response, url: address)
        let meaning = detector?.examine(examined, hasSession: session != nil)
        // A session that lacks scope is one that works.
        if case .challenged(let words)? = meaning, session != nil, response.status == 403, !words.isEmpty {
            return .pass
        }
        return meaning
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes

/// Login after a response with `Accept-Signature`: its session signs requests as the server has asked for.
struct MessageLogin: SessionLogin {
    /// Lifetime of a session, in milliseconds. A changed key is used after this time at the latest.
    static let lifetime: Int64 = 600_000

    let settings: MessageSignature
    let key: SessionKey
    let detector: MessageDetector
    let occasion: LoginOccasion
    /// Address that is requested if no request waits.
    let address: WebURL
    let digests: any MessageDigests
    let keys: any MessageKeys

    private var requests: RequestedSignatures { detector.requests }

    /// Looks up the key and returns a session that signs; an empty one if no signature is asked for.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        guard try await asksForSignature(conversation) else {
            return .nothingAsked(at: occasion.target ?? address, now: conversation.now())
        }
        let credential = try await conversation.credential(named: key.credential, for: key.challenge)
        let signingKey = try MessageSigningKey(
            of: settings, credential, challenge: key.challenge, digests: digests, keys: keys)
        requests.keyID = .known(signingKey.identifier)
        guard let plan = requestedPlan else {
            report("the server asks for a signature by another key", conversation)
            return .nothingAsked(at: occasion.target ?? address, now: conversation.now())
        }
        report("a signature \(plan.label) over \(plan.components.count) components", conversation)
        var session = Session(expiresAt: conversation.now().saturatingAdd(Self.lifetime))
        session.signer = MessageSigner(
            plan, agent: settings.agent, key: signingKey, challenge: key.challenge, digests: digests,
            makeNonce: plan.nonce == .received ? requests.takeNonce : MessageSigner.randomNonce)
        return session
    }

    /// Signature requested by the response, or, for a renewal, by the last response that requested one. Made with the
    /// present key.
    private var requestedPlan: MessagePlan? {
        guard let challenge = occasion.challenge else { return requests.plan }
        return detector.answer(status: challenge.status, challenge.fields)?.plan
    }

    /// Returns whether the server has asked for a signature. Without a challenge, a request without a body finds out.
    private func asksForSignature(_ conversation: Conversation) async throws(LoginFailure) -> Bool {
        if occasion.challenge != nil || requests.plan != nil { return true }
        let url = occasion.target ?? address
        let step = "HEAD \(url.path)"
        var request = SideRequest(method: .head, url: url)
        request.allowsPartialBody = true
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(request)
        } catch {
            report("\(step): no answer, \(error.reason)", conversation)
            switch error.kind {
            // The waiting request itself will report that.
            case .badAnswer, .tls, .unreachable: return false
            case .guarded, .originNotAllowed, .timedOut:
                throw LoginFailure(error, step: step, challenge: key.challenge)
            }
        }
        report("\(step): \(response.status)", conversation)
        guard let answer = detector.answer(status: response.status, response.fields) else { return false }
        requests.record(answer, at: url.path)
        return true
    }

    /// Reports a step. No answer to this login accepts a signature.
    private func report(_ text: String, _ conversation: Conversation) {
        conversation.report(ConversationStep(challenge: key.challenge, text: "signature: \(text)", kind: .remark))
    }
}

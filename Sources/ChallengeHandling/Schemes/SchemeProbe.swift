// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Asks for an address without a body, to meet a challenge there or to see whether an answer to it is accepted.
struct SchemeProbe {
    private let url: WebURL
    private let occasion: SchemeOccasion

    init(_ url: WebURL, _ occasion: SchemeOccasion) {
        self.url = url
        self.occasion = occasion
    }

    /// The response to a GET, with what `session` adds. `nil` where it cannot be told: a page too large for a side request,
    /// say. Throws where there was none, and for 429 and 5xx.
    func ask(with session: Session? = nil) async throws(LoginFailure) -> SideResponse? {
        var request = SideRequest(method: .get, url: url)
        // Only the head tells; what stands behind it may have no end.
        request.isLook = true
        var check: (any AnswerCheck)?
        if let session {
            let signed = try session.signer?.sign(SigningRequest(method: "GET", target: url.target)) ?? SignedFields()
            check = signed.check
            for field in session.fields + signed.fields { request.fields[field.name] = field.value.revealText() }
        }
        let step = "GET \(url.path)"
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await occasion.conversation.sideRequests.send(request)
        } catch {
            occasion.report("\(step): no answer, \(error.reason)")
            if error.kind == .badAnswer { return nil }
            throw LoginFailure(error, step: step, challenge: occasion.name)
        }
        if let fault = check?.fault(status: response.status, fields: response.fields) {
            throw LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server that answered \(step) did not prove that it is the one asked: \(fault).")
        }
        session?.signer?.learn(status: response.status, fields: response.fields)
        occasion.report("\(step)\(session == nil ? "" : " with the credential"): \(response.status)")
        guard response.status < 500, response.status != 429 else {
            throw LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server answered \(step) with status \(response.status).",
                retryAt: Moment.retry(after: response.fields, now: occasion.conversation.now()))
        }
        return response
    }
}

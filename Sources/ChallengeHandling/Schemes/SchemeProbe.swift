// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Asks for an address without a body, to meet a challenge there or to see whether an answer to it is accepted.
struct SchemeProbe {
    /// What the first look at an address brought.
    enum Look {
        /// A response that says what is asked for there.
        case response(SideResponse)
        /// The server is in trouble, or cannot be reached: whoever sends the request itself is told that.
        case trouble
    }

    private let url: WebURL
    private let occasion: SchemeOccasion
    private let method: HTTPRequest.Method

    /// A probe of `url`. `isTarget`: on behalf of a request that waits; then by HEAD, which brings no page (RFC 9110 §9.3.2).
    init(_ url: WebURL, _ occasion: SchemeOccasion, isTarget: Bool = false) {
        self.url = url
        self.occasion = occasion
        method = isTarget ? .head : .get
    }

    /// Looks without a credential on behalf of a request that waits, which goes on where nothing can be learned. Throws if the
    /// server does not answer in time, or a login in front of it failed.
    func look() async throws(LoginFailure) -> Look {
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await occasion.conversation.sideRequests.send(request)
        } catch {
            occasion.report("\(step): no answer, \(error.reason)")
            switch error.kind {
            case .badAnswer, .tls, .unreachable: return .trouble
            case .guarded, .originNotAllowed, .timedOut:
                throw LoginFailure(error, step: step, challenge: occasion.name)
            }
        }
        occasion.report("\(step): \(response.status)")
        // Many applications know no HEAD, and that is no trouble (RFC 9110 §15.6.2).
        return response.status >= 500 && response.status != 501 || response.status == 429
            ? .trouble : .response(response)
    }

    private var step: String { "\(method.rawValue) \(url.path)" }

    private var request: SideRequest {
        var request = SideRequest(method: method, url: url)
        // Only the head tells; what stands behind it may have no end.
        request.isLook = true
        return request
    }

    /// The response, with what `session` adds. `nil` where it cannot be told: a page too large for a side request,
    /// say. Throws where there was none, and for 429 and 5xx.
    func ask(with session: Session? = nil) async throws(LoginFailure) -> SideResponse? {
        var request = request
        var check: (any AnswerCheck)?
        if let session {
            let signed =
                try session.signer?.sign(
                    SigningRequest(method: method.rawValue, origin: url.origin, target: url.target)) ?? SignedFields()
            check = signed.check
            request.connection = session.connection
            for field in session.fields + signed.fields { request.fields[field.name] = field.value.revealText() }
        }
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await occasion.conversation.sideRequests.send(request)
        } catch {
            occasion.report("\(step): no answer, \(error.reason)")
            if error.kind == .badAnswer { return nil }
            throw LoginFailure(error, step: step, challenge: occasion.name)
        }
        if let fault = check?.fault(status: response.status, fields: response.fields) {
            occasion.report("\(step): the server did not prove that it is the one asked")
            // The request that waits tries the answer itself, and is told that of its own answer.
            if method == .head { return nil }
            throw LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server that answered \(step) did not prove that it is the one asked: \(fault).")
        }
        session?.signer?.learn(status: response.status, fields: response.fields, target: url.target)
        occasion.report("\(step)\(session == nil ? "" : " with the credential"): \(response.status)")
        guard response.status < 500, response.status != 429 else {
            // An application may well fail at a HEAD: the request that waits tries the answer itself.
            if method == .head { return nil }
            throw LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server answered \(step) with status \(response.status).",
                retryAt: Moment.retry(after: response.fields, now: occasion.conversation.now()))
        }
        return response
    }
}

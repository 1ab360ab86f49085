// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Requests without a body that get a challenge, or verify an answer to one.
struct SchemeProbe {
    /// Result of a request without a credential.
    enum Answer {
        /// A response that shows if a login is needed.
        case response(SideResponse)
        /// The server is in trouble or cannot be reached. The waiting request itself will report that.
        case trouble
    }

    /// Result of a request that was answered.
    private enum Finding {
        case response(SideResponse)
        /// An unusable response, and the failure of the login that depends on it.
        case useless(LoginFailure)
    }

    private let url: WebURL
    private let occasion: SchemeOccasion
    private let method: HTTPRequest.Method

    /// Creates a probe of `url`. With `isTarget` it replaces a waiting request and uses HEAD, which transfers no page
    /// (RFC 9110 §9.3.2).
    init(_ url: WebURL, _ occasion: SchemeOccasion, isTarget: Bool = false) {
        self.url = url
        self.occasion = occasion
        method = isTarget ? .head : .get
    }

    /// Sends a request without a credential for a waiting request. The waiting request continues if nothing can be
    /// learned. Throws if the server does not answer in time, or a login in front of it failed.
    func askWithoutCredential() async throws(LoginFailure) -> Answer {
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
        // Many applications do not implement HEAD; a 501 is no trouble (RFC 9110 §15.6.2).
        return InconclusiveStatus.contains(response.status) && response.status != 501 ? .trouble : .response(response)
    }

    private var step: String { "\(method.rawValue) \(url.path)" }

    private var request: SideRequest {
        var request = SideRequest(method: method, url: url)
        // Only the head matters; the body may be endless.
        request.allowsPartialBody = true
        return request
    }

    /// Sends the request with the fields of `session`. Returns `nil` for an unusable response: to HEAD, or an
    /// unreadable one without a session. Throws if there was no response, and for 408, 429 and 5xx.
    func ask(with session: Session? = nil) async throws(LoginFailure) -> SideResponse? {
        guard case .response(let response) = try await send(with: session) else { return nil }
        return response
    }

    /// Sends the request with the fields of `session`; only this response can show if they are accepted. Throws if it
    /// is unusable.
    func decide(with session: Session) async throws(LoginFailure) -> SideResponse {
        switch try await send(with: session) {
        case .response(let response): return response
        case .useless(let failure): throw failure
        }
    }

    private func send(with session: Session?) async throws(LoginFailure) -> Finding {
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
            let failure = LoginFailure(error, step: step, challenge: occasion.name)
            // The outcome of sending a credential is unknown, so that a pause follows (CONTRIBUTING, rule 3).
            if error.kind == .badAnswer, session == nil { return .useless(failure) }
            throw failure
        }
        if let fault = check?.fault(status: response.status, fields: response.fields) {
            occasion.report("\(step): the server did not prove its identity")
            let failure = LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server that answered \(step) did not prove its identity: \(fault).")
            // The waiting request uses the answer itself, and reports its own failure.
            if method == .head { return .useless(failure) }
            throw failure
        }
        session?.signer?.learn(status: response.status, fields: response.fields, target: url.target)
        occasion.report("\(step)\(session == nil ? "" : " with the credential"): \(response.status)")
        guard !InconclusiveStatus.contains(response.status) else {
            let failure = LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server answered \(step) with status \(response.status).",
                retryAt: Moment.retry(after: response.fields, now: occasion.conversation.now()))
            // An application may fail at HEAD only: the waiting request uses the answer itself.
            if method == .head { return .useless(failure) }
            throw failure
        }
        return .response(response)
    }
}

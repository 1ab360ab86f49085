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

    private let url: WebURL
    private let occasion: SchemeOccasion
    private let method: HTTPRequest.Method
    private let isDecisive: Bool

    /// Creates a probe of `url`. With `isTarget` it stands in for a waiting request and uses HEAD, which transfers no
    /// page (RFC 9110 §9.3.2). With `isDecisive` an answer of no use leaves the outcome of sending the credential unknown.
    init(_ url: WebURL, _ occasion: SchemeOccasion, isTarget: Bool = false, isDecisive: Bool = false) {
        self.url = url
        self.occasion = occasion
        self.isDecisive = isDecisive
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
        return response.status >= 500 && response.status != 501 || response.status == 429
            ? .trouble : .response(response)
    }

    private var step: String { "\(method.rawValue) \(url.path)" }

    private var request: SideRequest {
        var request = SideRequest(method: method, url: url)
        // Only the head matters; the body may be endless.
        request.allowsPartialBody = true
        return request
    }

    /// Sends the request with the fields of `session`. Returns `nil` for a response that is of no use, such as a page
    /// too large for a side request, unless the probe decides. Throws if there was none, and for 429 and 5xx.
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
            if error.kind == .badAnswer, session == nil || !isDecisive { return nil }
            throw LoginFailure(error, step: step, challenge: occasion.name)
        }
        if let fault = check?.fault(status: response.status, fields: response.fields) {
            occasion.report("\(step): the server did not prove its identity")
            // The waiting request uses the answer itself, and reports its own failure.
            if method == .head { return nil }
            throw LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server that answered \(step) did not prove its identity: \(fault).")
        }
        session?.signer?.learn(status: response.status, fields: response.fields, target: url.target)
        occasion.report("\(step)\(session == nil ? "" : " with the credential"): \(response.status)")
        guard response.status < 500, response.status != 429 else {
            // An application may fail at HEAD only: the waiting request uses the answer itself.
            if method == .head { return nil }
            throw LoginFailure(
                .failed, challenge: occasion.name,
                detail: "The server answered \(step) with status \(response.status).",
                retryAt: Moment.retry(after: response.fields, now: occasion.conversation.now()))
        }
        return response
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
package import HTTPWire
internal import Secrets

/// The caller's side of an exchange: source of the request, receiver of the response. Called on the loop's thread.
package protocol ExchangeCaller: AnyObject {
    /// Writes the request's fields, except hop-by-hop fields and those that `sessions` override.
    ///
    /// The caller's cookies are merged with those of `cookies`. Called again each time the request is sent.
    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    )
    /// Receives the answer to an auth request; `exchangeEnded` follows.
    func exchangeAuthorizes(_ answer: AuthRequestAnswer)
    /// Receives a well-formed interim response, whose ranges refer to `bytes` (RFC 9110 §15.2). The final one follows.
    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>)
    /// Receives the response head: `transfer.head` holds its raw, well-formed bytes, `transfer.answer` the parsed form.
    func exchangeDelivers(headOf transfer: Transfer)
    /// Receives the connection after a 101, which ends the exchange.
    ///
    /// `transfer.head` and `transfer.answer` are of the 101. The caller has to close `connection`. If this throws,
    /// nothing was sent to the caller and the connection is not the caller's.
    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError)
    /// Receives more of the response's body in `transfer.body`.
    ///
    /// Bytes left there are offered again after `Exchange.resumeResponse`. The exchange must not be cancelled from
    /// within this call.
    func exchangeDelivers(bodyOf transfer: Transfer)
    /// Receives the trailers after a complete body: `transfer.forEachTrailer`.
    func exchangeDelivers(trailersOf transfer: Transfer)
    /// Reports that the response is complete while the request's body is still being sent.
    func exchangeHasAll()
    /// Reports that the exchange is over and the response complete.
    func exchangeEnded()
    /// Reports that no response will come from upstream: answer locally.
    func exchangeFailed(_ error: ExchangeError)
    /// Reports that the response ended in its middle and must not look complete.
    func exchangeBroke(_ error: ExchangeError)
    /// Asks for the request's body, again if there is room for more. A caller that waits for 100 gets one.
    func exchangeWantsBody()
    /// True if the request has `Range` or a precondition, so that its answer may conceal a page (RFC 9110 §13, §14).
    var hasConditions: Bool { get }
    /// The caller's identity, asked of the kernel on first use; `nil` if unavailable.
    var identity: CallerIdentity? { get }
}

extension ExchangeCaller {
    /// Does nothing: only listeners for auth requests need this call.
    package func exchangeAuthorizes(_ answer: AuthRequestAnswer) {}

    /// False: only callers with requests of others need this property.
    package var hasConditions: Bool { false }
}

/// Fields that an external proxy adds to the request of an auth request.
package struct AuthRequestAnswer {
    private let sessions: SessionFields
    private let keepsCredentials: Bool
    /// The signed fields, valid for this request only.
    private var signed: [InjectedField] = []
    /// The sessions' cookies, to be merged with the caller's into one field.
    package let cookies: RequestCookies?
    /// Seconds for which the answer may be reused; 0 if only for this request.
    package let lifetime: Int64

    /// Collects the fields of the sessions held at `route`.
    ///
    /// Signers see `request` as far as the other proxy has described it. `isPartial`: one session is left out because
    /// it is unverified. Throws if a session cannot be used by another proxy.
    init(
        of route: RouteSessions, for request: @autoclosure () -> SigningRequest, keepsCredentials: Bool,
        isPartial: Bool, target: borrowing ByteQueue, at origin: Origin, now: Int64
    ) throws(LoginFailure) {
        sessions = route.fields
        self.keepsCredentials = keepsCredentials
        lifetime = !isPartial && !sessions.hasSigners ? max(0, route.dueAt &- now) / 1000 : 0
        cookies = sessions.hasCookies ? sessions.cookies(for: target, to: origin, now: now) : nil
        guard !keepsCredentials else { return }
        guard sessions.connection == nil else {
            throw LoginFailure(
                .failed, challenge: route.slots.first { $0.login.bindsConnections }?.login.name ?? "",
                detail: """
                    NTLM authenticates a connection, and the connection to the upstream belongs to the other proxy. Use an \
                    ordinary listener for such requests.
                    """)
        }
        guard sessions.hasSigners else { return }
        var fields: [InjectedField] = []
        var request = request()
        if let cookies { request.cookies = cookies.merged(with: []) }
        _ = try sessions.sign(request) { fields.append(InjectedField(name: $0, value: $1)) }
        signed = fields
    }

    /// Calls `body` with name and value of each field except `Cookie`. The spans are valid only during the call.
    package func forEachField(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        sessions.forEach(keepingCredentials: keepsCredentials, body)
        for field in signed { field.value.withBytes { body(field.name.rawName.utf8.span, $0) } }
    }
}

/// Identity of a caller, which may decide about the credentials of its requests.
package enum CallerIdentity: Hashable, Sendable {
    /// The user with this uid, as the kernel reports.
    case user(UInt32)
    /// The caller whose token is in the credential of this name.
    case token(String)
}

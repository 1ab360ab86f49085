// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import HTTPWire
internal import Secrets

/// The fields that another proxy is to add to a request which it asks about, and sends itself.
package struct SubrequestAnswer {
    private let sessions: SessionFields
    private let keepsCredentials: Bool
    /// The fields made for this one request.
    private var signed: [InjectedField] = []
    /// The sessions' cookies, which become one field with the caller's.
    package let cookies: RequestCookies?
    /// For how many seconds the same answer is right; 0: for this request only.
    package let lifetime: Int64

    /// The fields of the sessions that are held at `route`. `request` is known to signers as far as the other proxy has told it.
    /// `isPartial`: one session is left out, as nobody has proven it yet. Throws where a session is no use to another proxy.
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
                    NTLM authenticates a connection, and the connection to the upstream is the other proxy's. Send such \
                    requests by an ordinary listener.
                    """)
        }
        guard sessions.hasSigners else { return }
        var fields: [InjectedField] = []
        _ = try sessions.sign(request()) { fields.append(InjectedField(name: $0, value: $1)) }
        signed = fields
    }

    /// Shows name and value of each field but `Cookie` to `body`; they must not be kept beyond it.
    package func forEachField(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        sessions.forEach(keepingCredentials: keepsCredentials, body)
        for field in signed { field.value.withBytes { body(field.name.rawName.utf8.span, $0) } }
    }
}

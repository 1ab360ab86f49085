// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

extension MobileFirstClient {
    /// Logs this client out of one security check (POST preauth/v1/logout). All its tokens, of whatever scope, are to be
    /// forgotten afterwards, whether or not it throws. Without a registration there is nothing to do.
    ///
    /// Throws a `LoginFailure` where the server did not answer, or not with 200.
    public func logOut(of securityCheck: String, _ conversation: Conversation) async throws(LoginFailure) {
        try await turnstile.inTurn(of: name) { () async throws(LoginFailure) in
            try await logOutInTurn(of: securityCheck, conversation)
        }
    }

    private func logOutInTurn(of securityCheck: String, _ conversation: Conversation) async throws(LoginFailure) {
        let calls = MobileFirstCalls(name: name, conversation: conversation)
        // Of a session that was taken over, this process knows no registration yet.
        guard let registration = registration ?? loadKept(calls) else { return }
        let assertion: JSONWebSignature
        do {
            assertion = try self.assertion(by: registration, tokenID: nil, now: conversation.now())
        } catch {
            throw calls.failure(error.reason)
        }
        let request = SideRequest.form(
            configuration.api.appending(path: "preauth/v1/logout"),
            [
                ("security_check", Secret(securityCheck)),
                ("client_assertion_type", Secret("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")),
                ("client_assertion", Secret(assertion.compact)),
            ])
        do throws(MobileFirstInterruption) {
            let response = try await calls.send(request, "logout")
            guard response.status == 200 else { throw calls.unexpected(response, "logout") }
            calls.report("logout: 200")
        } catch {
            switch error {
            case .failed(let failure): throw failure
            // Nobody the server knows is logged in.
            case .unknownClient: forgetRegistration(calls)
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import EventLoop

/// The time that a login may take as a whole, by the clock of a loop.
package struct LoginLimit: Sendable {
    let time: Duration
    let loop: EventLoop

    /// A limit; the login runs on `loop`.
    package init(_ time: Duration, on loop: EventLoop) {
        self.time = time
        self.loop = loop
    }

    /// The end of `login` within the limit; its conversation is cut off there. After that nothing is known about the credential.
    fileprivate func result(
        for key: SessionKey, _ conversation: Conversation,
        of login: @escaping @Sendable (Conversation) async -> Result<Session, LoginFailure>
    ) async -> Result<Session, LoginFailure> {
        let deadline = LoginDeadline(on: loop)
        let bounded = deadline.bounding(conversation)
        return await deadline.outcome(within: time, late: .failure(.late(key, time))) { await login(bounded) }
    }

    /// The end of a login that has to wait for its turn in a fleet: as long for the turn as for the login. `login` is not begun after that.
    func result(
        inTurnFor key: SessionKey, login: @escaping @Sendable () async -> Result<Session, LoginFailure>,
        _ win:
            @escaping @Sendable (@Sendable () async -> Result<Session, LoginFailure>) async -> Result<
                Session, LoginFailure
            >?
    ) async -> Result<Session, LoginFailure>? {
        let deadline = LoginDeadline(on: loop)
        return await deadline.outcome(within: time * 2, late: .failure(.late(key, time * 2))) {
            await win { deadline.hasPassed ? .failure(.late(key, time * 2, isCancelled: true)) : await login() }
        }
    }
}

extension LoginFailure {
    /// The login took longer than it may.
    fileprivate static func late(_ key: SessionKey, _ limit: Duration, isCancelled: Bool = false) -> LoginFailure {
        LoginFailure(
            .timedOut, challenge: key.challenge,
            detail: """
                The login took longer than \(limit) (`timeouts.login`) and was given up. Look at what keeps it: the server, the \
                KDC, or a helper. A later request tries again.
                """, isCancelled: isCancelled)
    }
}

extension SessionLogin {
    /// Its end, as a value.
    fileprivate func result(_ conversation: Conversation) async -> Result<Session, LoginFailure> {
        do throws(LoginFailure) {
            return .success(try await win(conversation))
        } catch {
            return .failure(error)
        }
    }
}

extension ClientServices {
    /// Runs `login` once, with its own steps told to the observer. How long it took is told besides. Without `limit` it may take as
    /// long as it likes.
    package func run(
        _ login: any SessionLogin, for key: SessionKey, sideRequests: any SideRequests, within limit: LoginLimit? = nil
    ) async -> (Result<Session, LoginFailure>, Duration) {
        let loop = limit?.loop
        let began = loop?.clockNow ?? .read()
        let lookUps = ledger.map { CredentialLedger.LookUps(credentials, $0) }
        let conversation = conversation(for: key, credentials: lookUps ?? credentials, sideRequests: sideRequests)
        // The look at the latch reads the credential, and a source may hang as well as a server.
        let steps: @Sendable (Conversation) async -> Result<Session, LoginFailure> = { [self] conversation in
            if let failure = await closedLatch(of: key, conversation) { return .failure(failure) }
            return await login.result(conversation)
        }
        let result =
            if let limit { await limit.result(for: key, conversation, of: steps) } else { await steps(conversation) }
        if let lookUps { ledger?.note(key, lookUps, result) }
        return (result, (loop?.clockNow ?? .read()) - began)
    }

    /// The refusal that a login of `key` would end at: as long as the latch is closed that ended the last one, the server need not be asked
    /// for a challenge again for each request of a caller. `nil` if the credential has another value now, or cannot be looked up.
    func closedLatch(of key: SessionKey) async -> LoginFailure? {
        await closedLatch(
            of: key, conversation(for: key, credentials: credentials, sideRequests: NoSideRequests()))
    }

    private func closedLatch(of key: SessionKey, _ conversation: Conversation) async -> LoginFailure? {
        guard let latch = gate.read({ $0.sessions.lastLatch(of: key) }) else { return nil }
        do throws(LoginFailure) {
            _ = try await CredentialUse.look(up: latch, in: conversation)
        } catch {
            if error.code == .latched { return error }
        }
        gate.change { $0.sessions.forgetLatch(of: key) }
        return nil
    }

    /// Closes the latch of a credential that was refused outside of a login, and says how that ended.
    func close(_ use: CredentialUse, for key: SessionKey) -> LoginFailure {
        use.reject(
            .rejected, serverWait: nil,
            in: conversation(for: key, credentials: credentials, sideRequests: NoSideRequests()))
    }

    /// The world as a login or a logout of `key` may use it.
    func conversation(
        for key: SessionKey, credentials: any CredentialProvider, sideRequests: any SideRequests
    ) -> Conversation {
        let observer = observer
        return Conversation(
            sideRequests: sideRequests, credentials: credentials, attempts: gate, state: state, now: wallClock,
            report: { observer.loginStepped(key, $0) })
    }
}

/// For what sends nothing.
struct NoSideRequests: SideRequests {
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        throw SideRequestError(.originNotAllowed, reason: "nothing is sent here")
    }
}

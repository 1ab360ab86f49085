// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

extension ClientServices {
    /// Runs `login` once, with its own steps told to the observer. How long it took is told besides.
    package func run(
        _ login: any SessionLogin, for key: SessionKey, sideRequests: any SideRequests
    ) async -> (Result<Session, LoginFailure>, Duration) {
        let began = ContinuousClock.now
        let lookUps = ledger.map { CredentialLedger.LookUps(credentials, $0) }
        let conversation = conversation(for: key, credentials: lookUps ?? credentials, sideRequests: sideRequests)
        let result: Result<Session, LoginFailure>
        do throws(LoginFailure) {
            result = .success(try await login.win(conversation))
        } catch {
            result = .failure(error)
        }
        if let lookUps { ledger?.note(key, lookUps, result) }
        return (result, ContinuousClock.now - began)
    }

    /// Closes the latch of a credential that was refused outside of a login, and says how that ended.
    func close(_ use: CredentialUse, for key: SessionKey) -> LoginFailure {
        use.reject(
            .rejected, serverWait: nil,
            in: conversation(for: key, credentials: credentials, sideRequests: NoSideRequests()))
    }

    /// What a login or a logout of `key` may use of the world.
    func conversation(
        for key: SessionKey, credentials: any CredentialProvider, sideRequests: any SideRequests
    ) -> Conversation {
        let observer = observer
        return Conversation(
            sideRequests: sideRequests, credentials: credentials, latches: latches, state: state, now: wallClock,
            report: { observer.loginStepped(key, $0) })
    }
}

/// For what sends nothing.
private struct NoSideRequests: SideRequests {
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        throw SideRequestError(.originNotAllowed, reason: "nothing is sent here")
    }
}

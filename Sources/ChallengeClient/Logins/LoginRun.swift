// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

extension ClientServices {
    /// Runs `login` once, with its own steps told to the observer. How long it took is told besides.
    package func run(
        _ login: any SessionLogin, for key: SessionKey, sideRequests: any SideRequests
    ) async -> (Result<Session, LoginFailure>, Duration) {
        let began = ContinuousClock.now
        let observer = observer
        let conversation = Conversation(
            sideRequests: sideRequests, credentials: credentials, latches: latches, state: state, now: wallClock,
            report: { observer.loginStepped(key, $0) })
        let result: Result<Session, LoginFailure>
        do throws(LoginFailure) {
            result = .success(try await login.win(conversation))
        } catch {
            result = .failure(error)
        }
        return (result, ContinuousClock.now - began)
    }
}

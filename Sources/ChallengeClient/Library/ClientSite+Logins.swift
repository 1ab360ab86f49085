// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// How a login that was asked for ended.
typealias LoginOutcome = SessionTable<ExchangeTicket>.Outcome

/// A program's wait for a login, which that login, its time limit, the task's cancellation and the client's end may end.
typealias AwaitedLogin = Race<Result<LoginOutcome, ClientError>>

// Logins that the program asks for itself.
extension ClientSite {
    /// Has the session of `login` for `scope` used or won.
    func requestSession(of login: Authenticator, scope: Scope, _ finish: @escaping @Sendable (LoginOutcome) -> Void) {
        let slot = RouteSessions.Slot(login: login, scope: scope)
        runtime.logins.request(
            slot, rejected: nil, at: shared.plan(for: login.key.origin), challenge: nil, cause: LoginCause(.command),
            finish: finish)
    }

    /// Runs `login` whether or not a session is held, in whose place its own comes.
    func logIn(_ login: Authenticator, scope: Scope, _ finish: @escaping @Sendable (LoginOutcome) -> Void) {
        let slot = RouteSessions.Slot(login: login, scope: scope)
        let gate = runtime.gate
        _ = gate.change { $0.sessions.drop { $0.isSibling(of: slot.key) } }
        let ticket = runtime.nextTicket()
        let now = runtime.wallClock()
        switch gate.change({ $0.ask(for: slot.key, rejected: nil, waiter: ticket, now: now) }) {
        case .go:
            runtime.waiters.add(ticket, finish)
            runtime.logins.start(
                slot, at: shared.plan(for: login.key.origin), challenge: nil, LoginCause(.command))
        case .no(let failure): finish(.failed(failure))
        case .overloaded, .prove, .use, .wait:
            gate.change { $0.sessions.leave(slot.key, waiter: ticket) }
            finish(.failed(.inProcess(login.name)))
        }
    }

    /// Runs `body`, which ends sessions of `login` at the server, and forgets all of them.
    func logOut(
        _ login: Authenticator,
        _ body: @escaping @Sendable (Conversation) async throws(LoginFailure) -> Void,
        _ finish: @escaping @Sendable (Result<Void, LoginFailure>) -> Void
    ) {
        let plan = shared.plan(for: login.key.origin)
        let services = shared.services
        let conversation = services.conversation(
            for: login.key, credentials: services.credentials,
            sideRequests: runtime.logins.sideRequests(for: login, at: plan, cause: LoginCause(.command)))
        let logins = shared.logins
        logins.began()
        Task(executorPreference: loop) {
            let result: Result<Void, LoginFailure>
            do throws(LoginFailure) {
                try await body(conversation)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            _ = services.gate.change { $0.sessions.drop { $0.isSibling(of: login.key) } }
            finish(result)
            logins.ended()
        }
    }
}

extension LoginFailure {
    /// The original says so, too.
    static func inProcess(_ name: String) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name, detail: "A login at this server is under way. Wait for its end.",
            isCancelled: true)
    }
}

extension ClientLife {
    /// How what `begin` starts on the loop ends; an error where the task is cancelled, the client shut down or
    /// `ClientConfiguration.Timeouts.login` passes before.
    func wait(
        _ begin: @escaping @Sendable (ClientSite, @escaping @Sendable (LoginOutcome) -> Void) -> Void
    ) async throws(ClientError) -> LoginOutcome {
        let awaited = AwaitedLogin()
        let limit = shared.configuration.timeouts.login
        let loop = loop
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                awaited.begin(continuation)
                let isBegun = perform { site in
                    let timer = LazyTimer(loop: loop)
                    timer.onExpiry = {
                        awaited.end(
                            .failure(
                                ClientError(
                                    .timedOut,
                                    detail: "The login took longer than \(limit) (`timeouts.login`).")))
                    }
                    timer.arm(at: loop.now + limit)
                    let bound = LoopBound(timer, to: loop)
                    let number = site.hold(awaited)
                    begin(site) { outcome in
                        awaited.end(.success(outcome))
                        _ = self.perform { site in
                            bound.value.cancel()
                            site.stopAwaiting(number)
                        }
                    }
                } else: {
                    awaited.end(.failure(.unavailable))
                }
                if !isBegun { awaited.end(.failure(.shutDown)) }
            }
        } onCancel: {
            awaited.end(.failure(.cancelled))
        }
        return try result.get()
    }
}

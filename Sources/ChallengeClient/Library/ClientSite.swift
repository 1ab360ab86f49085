// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
internal import EventLoop

/// The state of a `ChallengeClient` on its loop: its servers and running requests.
final class ClientSite {
    /// The limit of servers with open connections; idle ones are closed beyond.
    private static let maxServers = 64
    /// The time that logins under way may take after the client's shutdown.
    private static let grace = Duration.seconds(5)

    let loop: EventLoop
    let runtime: ClientRuntime
    let shared: ClientShared
    private var servers: [Origin: UpstreamClient] = [:]
    private var version: UInt64 = 0
    private var running: [UInt64: (origin: Origin, exchange: ClientExchange)] = [:]
    private var awaited: [UInt64: AwaitedLogin] = [:]
    private var lastAwaited: UInt64 = 0
    private var onGone: [@Sendable () -> Void] = []
    private var graceTimer: LazyTimer?
    private var isClosing = false
    private var isGone = false
    private let onEmpty: () -> Void

    /// Creates the state. `onEmpty` is called at the end, when no work is left.
    init(loop: EventLoop, runtime: ClientRuntime, shared: ClientShared, onEmpty: @escaping () -> Void) {
        self.onEmpty = onEmpty
        self.loop = loop
        self.runtime = runtime
        self.shared = shared
    }

    var timeouts: ClientConfiguration.Timeouts { shared.configuration.timeouts }

    /// Returns the server at `origin`, with the handlers registered now.
    func server(at origin: Origin) -> UpstreamClient {
        let now = shared.registry.version
        if now != version {
            version = now
            for (origin, client) in servers {
                servers[origin] = UpstreamClient(plan: shared.plan(for: origin), runtime: runtime, after: client)
            }
            // Sessions of unregistered handlers are dropped.
            _ = runtime.gate.change { $0.sessions.drop { [registry = shared.registry] in !registry.isRegistered($0) } }
        }
        if let known = servers[origin] { return known }
        if servers.count >= Self.maxServers { makeRoom() }
        let client = UpstreamClient(plan: shared.plan(for: origin), runtime: runtime)
        servers[origin] = client
        return client
    }

    private func makeRoom() {
        let busy = Set(running.values.map(\.origin))
        for (origin, client) in servers where !busy.contains(origin) {
            client.retire()
            servers[origin] = nil
        }
    }

    // MARK: Requests

    /// Starts a request, unless it was cancelled meanwhile.
    func start(_ exchange: ClientExchange, number: UInt64) {
        let origin = exchange.request.origin
        guard !exchange.pipe.isBroken else { return exchange.fail(.cancelled) }
        guard !isClosing else { return exchange.fail(.shutDown) }
        guard running.count < shared.configuration.limits.requests else {
            return exchange.fail(
                ClientError(
                    .overloaded,
                    detail: "As many requests run as `limits.requests` allows. Wait for one of them, or raise it."))
        }
        running[number] = (origin, exchange)
        exchange.start(to: server(at: origin))
    }

    /// Returns the running request of that number.
    func exchange(_ number: UInt64) -> ClientExchange? { running[number]?.exchange }

    /// Removes a request that is over.
    func forget(_ number: UInt64) { running[number] = nil }

    /// Adds a program's wait for a login, and returns its number.
    func addWait(_ awaited: AwaitedLogin) -> UInt64 {
        lastAwaited += 1
        self.awaited[lastAwaited] = awaited
        return lastAwaited
    }

    /// Removes the wait of that number, which is over.
    func removeWait(_ number: UInt64) { awaited[number] = nil }

    // MARK: The end

    /// Ends all requests at once and the loop after the last login; then calls `done`.
    func close(_ done: (@Sendable () -> Void)?) {
        if let done { onGone.append(done) }
        guard !isClosing else { return isGone ? tellGone() : () }
        isClosing = true
        for (_, exchange) in running.values { exchange.fail(.shutDown) }
        for awaited in awaited.values { awaited.finish(.failure(.shutDown)) }
        awaited = [:]
        shared.calls.cancelAll()
        let timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in go() }
        graceTimer = timer
        timer.arm(at: loop.now + Self.grace)
        loginEnded()
    }

    /// Continues the shutdown after the end of a login.
    func loginEnded() {
        if isClosing, shared.logins.running == 0 { go() }
    }

    private func go() {
        guard !isGone else { return }
        isGone = true
        graceTimer?.cancel()
        for client in servers.values { client.retire() }
        servers = [:]
        shared.services.roster.dismiss(worker: runtime.worker)
        shared.logins.watch(nil)
        loop.stop()
        tellGone()
        onEmpty()
    }

    private func tellGone() {
        for done in onGone { done() }
        onGone = []
    }
}

/// The outcome of a requested login.
typealias LoginOutcome = SessionTable<ExchangeTicket>.Outcome

/// A program's wait for a login: ended by login, limit, cancellation or shutdown.
typealias AwaitedLogin = OneShot<Result<LoginOutcome, ClientError>>

// Logins requested by the program.
extension ClientSite {
    /// Uses the held session of `login` for `scope`, or logs in.
    func requestSession(of login: Authenticator, scope: Scope, _ finish: @escaping @Sendable (LoginOutcome) -> Void) {
        let slot = RouteSessions.Slot(login: login, scope: scope)
        runtime.logins.request(
            slot, rejected: nil, at: shared.plan(for: login.key.origin), challenge: nil, cause: LoginCause(.command),
            finish: finish)
    }

    /// Runs `login` even if a session is held, which the new one replaces.
    func logIn(_ login: Authenticator, scope: Scope, _ finish: @escaping @Sendable (LoginOutcome) -> Void) {
        let slot = RouteSessions.Slot(login: login, scope: scope)
        let gate = runtime.gate
        _ = gate.change { $0.sessions.drop { $0.isSibling(of: slot.key) } }
        let ticket = runtime.nextTicket()
        let now = runtime.wallClock()
        switch gate.change({ $0.requestSession(slot.key, rejected: nil, waiter: ticket, now: now) }) {
        case .logIn:
            runtime.waiters.add(ticket, finish)
            runtime.logins.start(
                slot, at: shared.plan(for: login.key.origin), challenge: nil, LoginCause(.command))
        case .refuse(let failure): finish(.failed(failure))
        case .overloaded, .verify, .use, .wait:
            gate.change { $0.sessions.removeWaiter(ticket, of: slot.key) }
            finish(.failed(.inProcess(login.name)))
        }
    }

    /// Runs `body`, which ends sessions of `login` at the server, and drops all of them.
    func logOut(
        _ login: Authenticator,
        _ body: @escaping @Sendable (Conversation) async throws(LoginFailure) -> Void,
        _ finish: @escaping @Sendable (Result<Void, LoginFailure>) -> Void
    ) {
        let plan = shared.plan(for: login.key.origin)
        let services = shared.services
        let conversation = services.conversation(
            for: login.key, credentials: plan.sources.credentials,
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
    /// Returns the failure that the original reports, too.
    static func inProcess(_ name: String) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name, detail: "A login at this server is under way. Wait for its end.",
            isCancelled: true)
    }
}

extension ClientLife {
    /// Returns the outcome of the login started by `begin` on the loop.
    ///
    /// Throws if the task is cancelled, the client is shut down or `ClientConfiguration.Timeouts.login` passes before.
    func wait(
        _ begin: @escaping @Sendable (ClientSite, @escaping @Sendable (LoginOutcome) -> Void) -> Void
    ) async throws(ClientError) -> LoginOutcome {
        let awaited = AwaitedLogin()
        let limit = shared.configuration.timeouts.login
        let loop = loop
        let result = await withTaskCancellationHandler {
            let isBegun = perform { site in
                let timer = LazyTimer(loop: loop)
                timer.onExpiry = {
                    awaited.finish(
                        .failure(
                            ClientError(
                                .timedOut,
                                detail: "The login took longer than \(limit) (`timeouts.login`).")))
                }
                timer.arm(at: loop.now + limit)
                let bound = LoopBound(timer, to: loop)
                let number = site.addWait(awaited)
                begin(site) { outcome in
                    awaited.finish(.success(outcome))
                    _ = self.perform { site in
                        bound.value.cancel()
                        site.removeWait(number)
                    }
                }
            } else: {
                awaited.finish(.failure(.unavailable))
            }
            if !isBegun { awaited.finish(.failure(.shutDown)) }
            return await awaited.wait()
        } onCancel: {
            awaited.finish(.failure(.cancelled))
        }
        return try result.get()
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling
package import EventLoop
internal import Synchronization

/// The time limit of a login as a whole, by the clock of a loop.
package struct LoginLimit: Sendable {
    let time: Duration
    let loop: EventLoop

    /// Creates a limit; the login runs on `loop`.
    package init(_ time: Duration, on loop: EventLoop) {
        self.time = time
        self.loop = loop
    }

    /// Returns the result of `login` within the limit, after which its conversation is cut off. After a timeout, the
    /// credential's state is unknown.
    fileprivate func result(
        for key: SessionKey, _ conversation: Conversation,
        of login: @escaping @Sendable (Conversation) async -> LoginEnd
    ) async -> LoginEnd {
        let deadline = LoginDeadline(on: loop)
        let bounded = deadline.bounding(conversation)
        return await deadline.outcome(
            within: time,
            late: LoginEnd(.failure(deadline.isInQueue ? .blockedByOtherProcess(key.challenge) : .late(key, time))),
            lateInQueue: LoginEnd(.failure(.lateInQueue(key, time)))
        ) { await login(bounded) }
    }

    /// Returns the result of a login that waits for its turn among nodes.
    ///
    /// The turn has the same limit as the login itself. `login` is not begun after both have passed.
    func result(
        inTurnFor key: SessionKey, login: @escaping @Sendable () async -> Result<Session, LoginFailure>,
        _ logIn:
            @escaping @Sendable (@Sendable () async -> Result<Session, LoginFailure>) async -> Result<
                Session, LoginFailure
            >?
    ) async -> Result<Session, LoginFailure>? {
        let deadline = LoginDeadline(on: loop)
        return await deadline.outcome(within: time * 2, late: .failure(.late(key, time * 2))) {
            await logIn { deadline.hasPassed ? .failure(.late(key, time * 2, isCancelled: true)) : await login() }
        }
    }
}

extension LoginFailure {
    /// Returns the failure of a login that exceeded its limit.
    fileprivate static func late(_ key: SessionKey, _ limit: Duration, isCancelled: Bool = false) -> LoginFailure {
        LoginFailure(
            .timedOut, challenge: key.challenge,
            detail: """
                The login took longer than \(limit) (`timeouts.login`) and was stopped. Check what delays it: the server, the \
                KDC, or a helper. A later request tries again.
                """, isCancelled: isCancelled)
    }

    /// Returns the failure of a login whose limit passed while it waited for others. It causes no pause.
    fileprivate static func lateInQueue(_ key: SessionKey, _ limit: Duration) -> LoginFailure {
        LoginFailure(
            .timedOut, challenge: key.challenge,
            detail: """
                The login waited longer than \(limit) (`timeouts.login`) for other logins with this credential, and was \
                stopped. Check what delays those: the identity provider, or the network. A later request tries again.
                """, isCancelled: true)
    }
}

extension SessionKey {
    /// The name of the turn of a login, in any scope, among the processes with the same state.
    var turnName: String { "login\0\(origin)\0\(challenge)\0\(credential)" }
}

/// The end of a login.
struct LoginEnd: Sendable {
    var result: Result<Session, LoginFailure>
    /// The turn that continues while a request tries the session; `nil` if it has ended.
    var turn: LoginTurn?
    var duration = Duration.zero

    init(_ result: Result<Session, LoginFailure>, turn: LoginTurn? = nil) {
        self.result = result
        self.turn = turn
    }
}

extension SessionLogin {
    /// Returns the end of the login as a value. Waits for its turn before anything is sent.
    fileprivate func end(of key: SessionKey, _ conversation: Conversation) async -> LoginEnd {
        do throws(LoginFailure) {
            let turn = try await conversation.takeTurn(key.turnName, of: key.challenge)
            var isTried = false
            defer { if !isTried { turn.end() } }
            let session = try await turn.during { () async throws(LoginFailure) in try await logIn(conversation) }
            isTried = !session.isVerified && session.use != nil
            return LoginEnd(.success(session), turn: isTried ? turn : nil)
        } catch {
            return LoginEnd(.failure(error))
        }
    }
}

extension ClientServices {
    /// Runs `login` once and reports its steps to the observer. Returns also the duration.
    ///
    /// It asks `sources` for credentials. Without `limit` there is no time limit, except `turnLimit` for the wait for logins of other
    /// processes.
    package func run(
        _ login: any SessionLogin, for key: SessionKey, asking sources: PlanSources, sideRequests: any SideRequests,
        within limit: LoginLimit? = nil, turnWithin turnLimit: LoginLimit? = nil
    ) async -> (Result<Session, LoginFailure>, Duration) {
        let end = await end(
            of: login, for: key, asking: sources, sideRequests: sideRequests, within: limit, turnWithin: turnLimit)
        end.turn?.end()
        return (end.result, end.duration)
    }

    /// Runs `login` once, as `run`. The turn of a session that a request has to try is the caller's to end.
    func end(
        of login: any SessionLogin, for key: SessionKey, asking sources: PlanSources, sideRequests: any SideRequests,
        within limit: LoginLimit?, turnWithin turnLimit: LoginLimit? = nil
    ) async -> LoginEnd {
        let loop = limit?.loop
        let began = loop?.clockNow ?? .read()
        let recorder = credentialVersions.map { CredentialVersions.RecordingProvider(sources, $0) }
        let conversation = conversation(
            for: key, credentials: recorder ?? sources.credentials, sideRequests: sideRequests,
            turns: turns(limit ?? turnLimit)
        )
        // The check of the latch reads the credential, and its source may hang like a server.
        let steps: @Sendable (Conversation) async -> LoginEnd = { [self] conversation in
            if let failure = await closedLatch(of: key, conversation) { return LoginEnd(.failure(failure)) }
            return await login.end(of: key, conversation)
        }
        var end =
            if let limit { await limit.result(for: key, conversation, of: steps) } else { await steps(conversation) }
        if let recorder { credentialVersions?.record(key, recorder, end.result) }
        end.duration = (loop?.clockNow ?? .read()) - began
        return end
    }

    /// Returns the refusal of a login of `key` if the last one's latch is still closed.
    ///
    /// Without this check, each request of a caller would ask the server for a challenge. `nil` if the credential has
    /// changed, or cannot be looked up.
    func closedLatch(of key: SessionKey, asking sources: PlanSources) async -> LoginFailure? {
        await closedLatch(
            of: key, conversation(for: key, credentials: sources.credentials, sideRequests: NoSideRequests()))
    }

    private func closedLatch(of key: SessionKey, _ conversation: Conversation) async -> LoginFailure? {
        guard let latch = gate.read({ $0.sessions.lastLatch(of: key) }) else { return nil }
        do throws(LoginFailure) {
            _ = try await CredentialUse.lookUp(latch, in: conversation)
        } catch {
            if error.code == .latched { return error }
        }
        gate.change { $0.sessions.forgetLatch(of: key) }
        return nil
    }

    /// Closes the latch of a credential that was refused outside of a login. Returns the failure when the latch is on disk.
    func close(_ use: CredentialUse, for key: SessionKey, asking sources: PlanSources) async -> LoginFailure {
        await use.reject(
            .rejected, serverWait: nil,
            in: conversation(for: key, credentials: sources.credentials, sideRequests: NoSideRequests()))
    }

    /// Returns the turns of logins that wait for other processes within `limit`.
    func turns(_ limit: LoginLimit?) -> any LoginTurns {
        guard let locks, let limit else { return UnsharedTurns() }
        return LoopLoginTurns(locks: locks, loop: limit.loop, limit: limit.time)
    }

    /// Returns the conversation for a login or a logout of `key`.
    func conversation(
        for key: SessionKey, credentials: any CredentialProvider, sideRequests: any SideRequests,
        turns: any LoginTurns = UnsharedTurns()
    ) -> Conversation {
        let observer = observer
        return Conversation(
            sideRequests: sideRequests, credentials: credentials, attempts: gate, state: state, turns: turns,
            now: wallClock,
            report: { observer.loginStepped(key, $0) })
    }
}

/// Login that sends nothing, because the latch of its credential was found closed.
struct RefusedLogin: SessionLogin {
    private let failure: LoginFailure

    /// Creates a login that ends with `failure`.
    init(_ failure: LoginFailure) { self.failure = failure }

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session { throw failure }
}

/// The side requests of a conversation that sends nothing.
struct NoSideRequests: SideRequests {
    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        throw SideRequestError(.originNotAllowed, reason: "nothing is sent here")
    }
}

/// The time limit of one login as a whole (`timeouts.login`).
///
/// Includes GSS-API, helpers and side requests. Time in a queue of logins does not count, up to the limit. After the
/// deadline the login sends nothing and looks nothing up. An answer on its way is still processed: a rejection closes its
/// latch, a rotated refresh token is stored. Then the login's task is cancelled, so that others get their turn.
final class LoginDeadline: Sendable {
    private struct State: Sendable {
        var hasPassed = false
        var hasEnded = false
        /// The number of side requests on their way.
        var requests = 0
        /// True while the login waits for one of another process.
        var isInQueue = false
        var timer: LoopBound<LazyTimer>?
        /// The beginning of the present wait in a queue.
        var queuedAt: LoopInstant?
        /// The time in queues, which postpones the deadline; `nil` once it has.
        var queued: Duration? = .zero
    }

    /// The time to process an answer after its arrival, before the task is cancelled.
    private static let grace = Duration.seconds(1)

    private let state = Mutex(State())
    private let loop: EventLoop

    init(on loop: EventLoop) { self.loop = loop }

    /// True if the deadline has passed.
    var hasPassed: Bool { state.withLock { $0.hasPassed } }

    /// True while the login waits for one of another process.
    var isInQueue: Bool { state.withLock { $0.isInQueue } }

    fileprivate func setInQueue(_ isInQueue: Bool) { state.withLock { $0.isInQueue = isInQueue } }

    /// Returns the result of `body`, or `late` after `limit`; `lateInQueue` if the login waits in a queue of this process then.
    ///
    /// `body` continues then, and is cancelled once none of its requests is on its way.
    func outcome<Outcome: Sendable>(
        within limit: Duration, late: @autoclosure @escaping @Sendable () -> Outcome, lateInQueue: Outcome? = nil,
        of body: @escaping @Sendable () async -> Outcome
    ) async -> Outcome {
        let oneShot = OneShot<Outcome>()
        let task = Task(executorPreference: loop) {
            let outcome = await body()
            self.end()
            oneShot.finish(outcome)
        }
        begin(
            limit, passed: { oneShot.finish($0 ? lateInQueue ?? late() : late()) }, abandoned: { task.cancel() })
        return await withTaskCancellationHandler {
            await oneShot.wait()
        } onCancel: {
            task.cancel()
        }
    }

    private func begin(
        _ limit: Duration, passed: @escaping @Sendable (_ isInQueue: Bool) -> Void,
        abandoned: @escaping @Sendable () -> Void
    ) {
        loop.execute { [self, loop] in
            let timer = LazyTimer(loop: loop)
            let expiry = loop.now + limit
            timer.onExpiry = { [self] in
                if let queued = takePostponement() { return timer.arm(at: expiry + queued) }
                let (isFirst, isIdle, isInQueue) = state.withLock { state in
                    defer { state.hasPassed = true }
                    return (!state.hasPassed, state.requests == 0, state.queuedAt != nil)
                }
                if isFirst { passed(isInQueue) }
                guard !isFirst, isIdle else { return timer.arm(at: loop.now + Self.grace) }
                // The timer retains itself up to here.
                timer.onExpiry = nil
                abandoned()
            }
            timer.arm(at: expiry)
            let bound = LoopBound(timer, to: loop)
            let hasEnded = state.withLock { state in
                state.timer = bound
                return state.hasEnded
            }
            if hasEnded { end() }
        }
    }

    /// Returns the time by which the deadline is postponed, once: the time that the login spent in queues.
    private func takePostponement() -> Duration? {
        state.withLock { state in
            guard !state.hasPassed, state.queuedAt == nil, let queued = state.queued, queued > .zero else { return nil }
            state.queued = nil
            return queued
        }
    }

    /// Records that the login begins or ends to wait in a queue.
    private func recordWait(_ waits: Bool) {
        let now = loop.clockNow
        state.withLock { state in
            if let since = state.queuedAt { state.queued? += now - since }
            state.queuedAt = waits ? now : nil
        }
    }

    private func end() {
        let timer = state.withLock { state in
            state.hasEnded = true
            defer { state.timer = nil }
            return state.timer
        }
        guard let timer else { return }
        loop.execute {
            timer.value.cancel()
            timer.value.onExpiry = nil
        }
    }

    /// Counts a side request about to be sent. Returns false if the deadline has passed.
    fileprivate func beginRequest() -> Bool {
        state.withLock { state in
            if !state.hasPassed { state.requests += 1 }
            return !state.hasPassed
        }
    }

    fileprivate func endRequest() { state.withLock { $0.requests -= 1 } }

    /// Returns `conversation` with its means limited by the deadline.
    func bounding(_ conversation: Conversation) -> Conversation {
        Conversation(
            sideRequests: BoundedRequests(requests: conversation.sideRequests, deadline: self),
            credentials: BoundedCredentials(credentials: conversation.credentials, deadline: self),
            attempts: conversation.attempts, state: conversation.state,
            turns: BoundedTurns(turns: conversation.turns, deadline: self), now: conversation.now,
            waiting: { [self] in recordWait($0) },
            report: { [self] step in if !hasPassed { conversation.report(step) } })
    }
}

/// Side requests that are sent until the deadline.
private struct BoundedRequests: SideRequests {
    let requests: any SideRequests
    let deadline: LoginDeadline

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        guard deadline.beginRequest() else {
            throw SideRequestError(
                .timedOut, reason: "the login took longer than `timeouts.login`; nothing was sent", isUnsent: true)
        }
        defer { deadline.endRequest() }
        return try await requests.send(request)
    }
}

/// Credentials that can be looked up until the deadline.
private struct BoundedCredentials: CredentialProvider {
    let credentials: any CredentialProvider
    let deadline: LoginDeadline

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        let found = deadline.hasPassed ? nil : try await credentials.credential(named: name)
        // A credential that arrives after the deadline must not be sent either.
        guard !deadline.hasPassed else { throw CredentialError(reason: "The login took longer than `timeouts.login`.") }
        return found
    }

    func advice(onMissing name: String) -> String { credentials.advice(onMissing: name) }
}

/// Turns that are taken until the deadline.
private struct BoundedTurns: LoginTurns {
    let turns: any LoginTurns
    let deadline: LoginDeadline

    func take(_ name: String, waiting: @escaping @Sendable () -> Void) async -> LoginTurn? {
        let turn = await turns.take(name) { [deadline] in
            deadline.setInQueue(true)
            waiting()
        }
        deadline.setInQueue(false)
        // A turn that comes after the deadline ends at once.
        return deadline.hasPassed ? nil : turn
    }
}

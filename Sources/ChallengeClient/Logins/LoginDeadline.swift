// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import Synchronization

/// The time limit of one login as a whole (`timeouts.login`), whatever hangs in it: GSS-API, a helper, a side request.
///
/// After the deadline the login sends nothing and looks nothing up any more. An answer that is on its way is still taken: a rejection
/// closes its latch, a rotated refresh token is kept. Then the login's task is cancelled, so that it gives up its turns.
final class LoginDeadline: Sendable {
    private struct State: Sendable {
        var hasPassed = false
        var hasEnded = false
        /// Side requests that are on their way.
        var requests = 0
        var timer: LoopBound<LazyTimer>?
    }

    /// The time that an answer has to be carried out after it has come, before the task is cancelled.
    private static let grace = Duration.seconds(1)

    private let state = Mutex(State())
    private let loop: EventLoop

    init(on loop: EventLoop) { self.loop = loop }

    /// True if the login is over by its deadline.
    var hasPassed: Bool { state.withLock { $0.hasPassed } }

    /// Returns what `body` returns, or `late` after `limit`. `body` goes on then, and is cancelled when none of its requests is on
    /// its way any more.
    func outcome<Outcome: Sendable>(
        within limit: Duration, late: Outcome, of body: @escaping @Sendable () async -> Outcome
    ) async -> Outcome {
        let race = Race<Outcome>()
        let task = Task(executorPreference: loop) {
            let outcome = await body()
            self.end()
            race.end(outcome)
        }
        begin(limit, passed: { race.end(late) }, abandoned: { task.cancel() })
        return await withTaskCancellationHandler {
            await withCheckedContinuation { race.begin($0) }
        } onCancel: {
            task.cancel()
        }
    }

    private func begin(
        _ limit: Duration, passed: @escaping @Sendable () -> Void, abandoned: @escaping @Sendable () -> Void
    ) {
        loop.execute { [self, loop] in
            let timer = LazyTimer(loop: loop)
            timer.onExpiry = { [self] in
                let (isFirst, isIdle) = state.withLock { state in
                    defer { state.hasPassed = true }
                    return (!state.hasPassed, state.requests == 0)
                }
                if isFirst { passed() }
                guard !isFirst, isIdle else { return timer.arm(at: loop.now + Self.grace) }
                // It holds itself up to here.
                timer.onExpiry = nil
                abandoned()
            }
            timer.arm(at: loop.now + limit)
            let bound = LoopBound(timer, to: loop)
            let hasEnded = state.withLock { state in
                state.timer = bound
                return state.hasEnded
            }
            if hasEnded { end() }
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

    /// A side request is about to be sent: `false` where the deadline has passed.
    fileprivate func beginRequest() -> Bool {
        state.withLock { state in
            if !state.hasPassed { state.requests += 1 }
            return !state.hasPassed
        }
    }

    fileprivate func endRequest() { state.withLock { $0.requests -= 1 } }

    /// `conversation`, as far as the deadline lets a login use it.
    func bounding(_ conversation: Conversation) -> Conversation {
        Conversation(
            sideRequests: BoundedRequests(requests: conversation.sideRequests, deadline: self),
            credentials: BoundedCredentials(credentials: conversation.credentials, deadline: self),
            attempts: conversation.attempts, state: conversation.state, now: conversation.now,
            report: { [self] step in if !hasPassed { conversation.report(step) } })
    }
}

/// Side requests that are sent until the deadline.
private struct BoundedRequests: SideRequests {
    let requests: any SideRequests
    let deadline: LoginDeadline

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        guard deadline.beginRequest() else {
            throw SideRequestError(.timedOut, reason: "the login took longer than `timeouts.login`; nothing was sent")
        }
        defer { deadline.endRequest() }
        return try await requests.send(request)
    }
}

/// Credentials that are looked up until the deadline.
private struct BoundedCredentials: CredentialProvider {
    let credentials: any CredentialProvider
    let deadline: LoginDeadline

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        let found = deadline.hasPassed ? nil : try await credentials.credential(named: name)
        // One that was looked up for longer must not be sent either.
        guard !deadline.hasPassed else { throw CredentialError(reason: "The login took longer than `timeouts.login`.") }
        return found
    }

    func advice(onMissing name: String) -> String { credentials.advice(onMissing: name) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import Glibc
internal import HTTPWire
internal import Synchronization
internal import System

/// A client's loop on its thread. Ends when the last reference is released.
final class ClientLife: Sendable {
    let loop: EventLoop
    let shared: ClientShared
    let site: SiteBox
    private let numbers = Atomic<UInt64>(0)
    /// True after `close`. Locked while work is passed to the loop, so that no work reaches a stopped loop.
    private let isClosed = Mutex(false)

    /// The loop's state, set before the first turn and removed after the last.
    final class SiteBox: Sendable {
        fileprivate let site = Mutex<LoopBound<ClientSite>?>(nil)

        /// The state; for the loop's thread. `nil` without libcurl, and at the end.
        var value: ClientSite? { site.withLock { $0 }?.value }

        /// Removes the state. Called on the loop's thread.
        func empty() { site.withLock { $0 = nil } }
    }

    /// Starts the thread. Throws `unavailable` if no thread can be started.
    init(_ configuration: ClientConfiguration, clock: ManualLoopClock?) throws(ClientError) {
        let shared = ClientShared(configuration)
        self.shared = shared
        let box = SiteBox()
        site = box
        do throws(EventLoopError) {
            let thread = try EventLoopThread(name: "challenges", clock: clock) { loop in
                let runtime = try? ClientRuntime(loop: loop, worker: 0, services: shared.services, connections: 32)
                guard let runtime else { return }
                let site = ClientSite(loop: loop, runtime: runtime, shared: shared) { box.empty() }
                box.site.withLock { $0 = LoopBound(site, to: loop) }
            }
            thread.detach()
            loop = thread.loop
        } catch {
            throw ClientError(.unavailable, detail: "The client could not be made: \(error.description).")
        }
        let loop = loop
        shared.calls.begin { loop }
        shared.logins.watch { loop.execute { box.value?.loginEnded() } }
    }

    deinit { close(nil) }

    /// Runs `body` on the loop. Returns false, without calling `body`, if the client is shut down.
    func perform(_ body: @escaping @Sendable (ClientSite) -> Void, else failed: @escaping @Sendable () -> Void = {})
        -> Bool
    {
        isClosed.withLock { isClosed in
            guard !isClosed else { return false }
            loop.execute { [site] in
                if let site = site.value { body(site) } else { failed() }
            }
            return true
        }
    }

    /// Starts passing a body in pieces to the request of that number.
    func feed(_ body: RequestBody, to number: UInt64) {
        guard case .pieces(_, let run) = body.content else { return }
        let (loop, site) = (loop, site)
        let task = Task.detached { [weak self] in
            let failure: (any Error)?
            do {
                try await run { [weak self] piece in
                    guard let self else { return false }
                    return await self.hand(piece, to: number)
                }
                failure = nil
            } catch {
                failure = error
            }
            loop.execute { site.value?.exchange(number)?.endPieces(failure) }
        }
        let isHeld = perform { site in
            if let exchange = site.exchange(number) { exchange.pieces = task } else { task.cancel() }
        }
        if !isHeld { task.cancel() }
    }

    /// Passes on one piece once there is room. Returns true if more is wanted.
    private func hand(_ piece: [UInt8], to number: UInt64) async -> Bool {
        await withCheckedContinuation { continuation in
            let isTaken = perform { site in
                guard let exchange = site.exchange(number) else { return continuation.resume(returning: false) }
                exchange.take(piece, continuation)
            } else: {
                continuation.resume(returning: false)
            }
            if !isTaken { continuation.resume(returning: false) }
        }
    }

    /// Returns a number for the next request.
    func nextNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Ends everything; `done` is called when the thread is about to end.
    func close(_ done: (@Sendable () -> Void)?) {
        let isFirst = isClosed.withLock { isClosed in
            defer { isClosed = true }
            if !isClosed {
                loop.execute { [site, loop] in
                    if let site = site.value {
                        site.close(done)
                    } else {
                        loop.stop()
                        done?()
                    }
                }
            }
            return !isClosed
        }
        if isFirst { shared.registry.removeAll() } else { done?() }
    }
}

/// The thread-safe state of a `ChallengeClient`: configuration, handlers, sessions.
final class ClientShared: Sendable {
    let configuration: ClientConfiguration
    let services: ClientServices
    let registry: HandlerRegistry
    let calls: HandlerCalls
    let logins: RunningLogins
    private let connections: ConnectionSettings

    init(_ configuration: ClientConfiguration) {
        self.configuration = configuration
        calls = HandlerCalls(limit: configuration.timeouts.handler, isApart: true)
        logins = RunningLogins(onStep: configuration.onStep)
        let gate = SharedAttemptGate(
            limits: SessionLimits(waiters: configuration.limits.waiters), store: configuration.attempts,
            now: Self.wallClock)
        registry = HandlerRegistry(configuration, calls: calls)
        connections = configuration.connections.settings
        services = ClientServices(
            gate: gate, state: configuration.state, wallClock: Self.wallClock, observer: logins)
    }

    /// Returns the settings of the server at `origin`, with its logins.
    func plan(for origin: Origin) -> UpstreamPlan {
        let times = configuration.timeouts
        let timeouts = UpstreamPlan.Timeouts(
            connect: times.connect, response: times.response, idle: times.idle, login: times.login)
        return UpstreamPlan(
            name: origin.description, base: WebURL(origin: origin, path: "/"), connections: connections,
            timeouts: timeouts, replay: ReplayTiers(memory: configuration.limits.replay),
            logins: registry.logins(at: origin), loginOrigins: registry.loginOrigins
        ).asking(PlanSources(configuration.credentials))
    }

    /// Returns milliseconds since 1970.
    static let wallClock: @Sendable () -> Int64 = SystemClock.wallClock
}

/// The logins under way; passes their steps on.
final class RunningLogins: LoginObserver {
    private struct State {
        var logins: Set<SessionKey> = []
        var others = 0
        var onEnd: (@Sendable () -> Void)?

        var count: Int { logins.count + others }
    }

    private let state = Mutex(State())
    private let onStep: @Sendable (ConversationStep) -> Void

    init(onStep: @escaping @Sendable (ConversationStep) -> Void) { self.onStep = onStep }

    var running: Int { state.withLock { $0.count } }

    /// Sets a callback for the end of each login.
    func watch(_ onEnd: (@Sendable () -> Void)?) { state.withLock { $0.onEnd = onEnd } }

    /// Counts a conversation other than a login.
    func began() { state.withLock { $0.others += 1 } }

    /// Ends a conversation counted by `began`.
    func ended() { change { $0.others -= 1 } }

    private func change(_ body: (inout sending State) -> Void) {
        let onEnd = state.withLock { state in
            body(&state)
            return state.onEnd
        }
        onEnd?()
    }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        _ = state.withLock { $0.logins.insert(key) }
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) { onStep(step) }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        change { _ = $0.logins.remove(key) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import Glibc
internal import HTTPWire
internal import Synchronization

/// What a `ChallengeClient` knows on every thread: its configuration, its handlers, its sessions.
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
            gate: gate, credentials: configuration.credentials, state: configuration.state, wallClock: Self.wallClock,
            observer: logins)
    }

    /// How the server at `origin` is reached, and what stands ready there.
    func plan(for origin: Origin) -> UpstreamPlan {
        let times = configuration.timeouts
        let timeouts = UpstreamPlan.Timeouts(
            connect: times.connect, response: times.response, idle: times.idle, login: times.login)
        return UpstreamPlan(
            name: origin.description, base: WebURL(origin: origin, path: "/"), connections: connections,
            timeouts: timeouts, replay: ReplayTiers(memory: configuration.limits.replay),
            logins: registry.logins(at: origin), loginOrigins: registry.loginOrigins)
    }

    /// Milliseconds since 1970.
    static let wallClock: @Sendable () -> Int64 = {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
    }
}

/// Knows the logins that run, and passes their steps on.
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

    /// Has `onEnd` called when one ends.
    func watch(_ onEnd: (@Sendable () -> Void)?) { state.withLock { $0.onEnd = onEnd } }

    /// A conversation that is no login begins.
    func began() { state.withLock { $0.others += 1 } }

    /// It is over.
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

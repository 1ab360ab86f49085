// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// What a `ChallengeClient` has on its loop: the servers that it speaks to, and the requests that run.
final class ClientSite {
    /// How many servers are remembered with their connections; beyond, those at rest give way.
    private static let mostServers = 64
    /// How long logins that are under way may take when the client is shut down.
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

    /// `onEmpty` is called at the end, when nothing more is to be done here.
    init(loop: EventLoop, runtime: ClientRuntime, shared: ClientShared, onEmpty: @escaping () -> Void) {
        self.onEmpty = onEmpty
        self.loop = loop
        self.runtime = runtime
        self.shared = shared
    }

    var timeouts: ClientConfiguration.Timeouts { shared.configuration.timeouts }

    /// The server at `origin`, with the handlers that are registered now.
    func server(at origin: Origin) -> UpstreamClient {
        let now = shared.registry.version
        if now != version {
            version = now
            for (origin, client) in servers {
                servers[origin] = UpstreamClient(plan: shared.plan(for: origin), runtime: runtime, after: client)
            }
            // What somebody has won who is not registered any more is nobody's.
            _ = runtime.gate.change { $0.sessions.drop { [registry = shared.registry] in !registry.isRegistered($0) } }
        }
        if let known = servers[origin] { return known }
        if servers.count >= Self.mostServers { makeRoom() }
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

    /// Starts a request, if it was not given up meanwhile.
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

    /// The request of that number, while it runs.
    func exchange(_ number: UInt64) -> ClientExchange? { running[number]?.exchange }

    /// It is over.
    func forget(_ number: UInt64) { running[number] = nil }

    /// Somebody waits for a login; a number to say by that it is over.
    func hold(_ awaited: AwaitedLogin) -> UInt64 {
        lastAwaited += 1
        self.awaited[lastAwaited] = awaited
        return lastAwaited
    }

    /// The login of that number is over.
    func stopAwaiting(_ number: UInt64) { awaited[number] = nil }

    // MARK: The end

    /// Ends all requests at once and the loop as soon as no login runs; then calls `done`.
    func close(_ done: (@Sendable () -> Void)?) {
        if let done { onGone.append(done) }
        guard !isClosing else { return isGone ? tellGone() : () }
        isClosing = true
        for (_, exchange) in running.values { exchange.fail(.shutDown) }
        for awaited in awaited.values { awaited.end(.failure(.shutDown)) }
        awaited = [:]
        shared.calls.cancelAll()
        let timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in go() }
        graceTimer = timer
        timer.arm(at: loop.now + Self.grace)
        loginEnded()
    }

    /// A login has ended, or none has run.
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import EventLoop
import HTTPTypes
import Secrets
import SessionStoreModel
import SharedSessions
import Synchronization
import TestSupport

/// Nodes in this process, each with a loop and latches of its own, that share sessions through a session store in memory.
final class NodesOfTests: Sendable {
    /// One node, with its own loop and session store connection.
    struct Node: Sendable {
        let services: ClientServices
        let sharing: LeasedSessionSharing
        let sources: PlanSources
        let runtime: LoopBound<ClientRuntime>?
        let credentials: Mutable<[String: [String: Secret]]>
        /// Called on each lookup of a credential.
        let onLookup: Mutable<@Sendable () -> Void>
        /// Wall clock of the node, in ms since 1970.
        let clock: Mutable<Int64>
        let thread: EventLoopThread
    }

    let sessionStore = MemorySessionStore.Shared()
    let nodes: [Node]

    /// Creates one node for each of `pins`, its credential. Their session stores are created when `isOpen` is set.
    init(_ pins: [String], until isOpen: Signal? = nil) throws {
        let sessionStore = sessionStore
        nodes = try pins.map { pin in try Self.node(pin, sessionStore, isOpen) }
    }

    private static func node(_ pin: String, _ sessionStore: MemorySessionStore.Shared, _ isOpen: Signal?) throws -> Node
    {
        let credentials = Mutable(["pin": ["pin": Secret(pin)]])
        let onLookup = Mutable<@Sendable () -> Void>({})
        let provider = MutableCredentials(credentials, onLookup)
        let digests = SharedDigests(sealing: OpenSealing(), canonical: canonical)
        let clock = Mutable<Int64>(1_000_000_000_000)
        let now: @Sendable () -> Int64 = { clock.value }
        let gate = SharedAttemptGate(
            sharedDigests: { digests.digests(of: $1, rejectedFor: $0) }, now: now)
        let version: @Sendable (Credential) -> [UInt8] = { Array("local ".utf8) + canonical($0).revealBytes() }
        var times = LeaseTimes()
        times.spread = .milliseconds(10)
        // Long enough for a machine that runs all tests at once.
        times.lease = .seconds(300)
        times.alone = .milliseconds(50)
        let credentialVersions = CredentialVersions(digest: version)
        let observer = SilentObserver()
        let sharing = LeasedSessionSharing(
            SharingContext(
                gate: gate, limits: SessionLimits(), credentialVersions: credentialVersions, observer: observer,
                version: version, wallClock: now),
            digests: digests, times: times)
        let services = ClientServices(
            gate: gate, state: MemoryState(), wallClock: now, observer: observer,
            credentialVersions: credentialVersions, sharing: sharing)
        let isListed = Signal()
        let made = Mutable<LoopBound<ClientRuntime>?>(nil)
        let thread = try EventLoopThread(name: "node") { loop in
            defer { isListed.set() }
            guard let runtime = try? ClientRuntime(loop: loop, worker: 0, services: services, connections: 1) else {
                return
            }
            let bound = LoopBound(runtime, to: loop)
            made.value = bound
            loop.execute { _ = bound.value.worker }
        }
        isListed.wait()
        sharing.serve(plan("", PlanSources(provider)))
        sharing.begin(services) { runtime in
            isOpen?.wait()
            return MemorySessionStore(sessionStore, loop: runtime.loop)
        }
        return Node(
            services: services, sharing: sharing, sources: PlanSources(provider), runtime: made.value,
            credentials: credentials, onLookup: onLookup,
            clock: clock, thread: thread)
    }

    /// Ends the nodes. Waiting logins are not completed.
    func end() {
        for node in nodes {
            // The closure of a test may retain the node.
            node.onLookup.value = {}
            node.sharing.end()
        }
        // Jobs that the nodes started for each other have to end before their loops stop.
        for _ in 0..<20 {
            for node in nodes {
                let isDone = Signal()
                node.thread.loop.execute { isDone.set() }
                isDone.wait()
            }
        }
        for node in nodes {
            node.services.roster.dismiss(worker: 0)
            node.thread.loop.stop()
            node.thread.join()
        }
        sessionStore.close()
    }

    static let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example", port: 443), challenge: "bank-pin", credential: "pin")

    /// Returns the plan of a configuration that differs from others by `mark`.
    static func plan(_ mark: String, _ sources: PlanSources) -> SharingPlan {
        SharingPlan(keys: [key], sources: sources) {
            .init(
                text: StoreName.of(account: $0.challenge + mark, scope: $0.scope),
                configuration: [1, 2, 3] + Array(mark.utf8))
        }
    }

    static func canonical(_ credential: Credential) -> Secret {
        Secret(credential.fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.revealText());" }.joined())
    }

    /// Returns a session with that token.
    static func session(_ token: String, until end: Int64? = nil) -> Session {
        var session = Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))])
        session.expiresAt = end
        return session
    }

    /// Returns the token of a session, or `nil` for a failure.
    static func token(of result: Result<Session, LoginFailure>?) -> String? {
        guard case .success(let session) = result else { return nil }
        return session.fields.first.map { String($0.value.revealText().dropFirst("Bearer ".count)) }
    }
}

/// A value that tests change.
final class Mutable<Value: Sendable>: Sendable {
    private let content: Mutex<Value>

    init(_ value: Value) { content = Mutex(value) }

    var value: Value {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }
}

private struct MutableCredentials: CredentialProvider {
    let credentials: Mutable<[String: [String: Secret]]>
    let onLookup: Mutable<@Sendable () -> Void>

    init(_ credentials: Mutable<[String: [String: Secret]]>, _ onLookup: Mutable<@Sendable () -> Void>) {
        self.credentials = credentials
        self.onLookup = onLookup
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        onLookup.value()
        return credentials.value[name].map { Credential(name: name, fields: $0) }
    }
}

/// Sealing that encrypts nothing and only checks the name.
struct OpenSealing: SessionSealing {
    func sealed(_ value: Secret, as name: String) -> [UInt8]? { Array(name.utf8) + [0] + value.revealBytes() }

    func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        let head = Array(name.utf8) + [0]
        return bytes.starts(with: head) ? Secret(bytes.dropFirst(head.count)) : nil
    }

    func digests(of value: Secret) -> [String] { [value.revealText()] }
}

private struct SilentObserver: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {}
}

/// One node's connection to a session store in memory.
final class MemorySessionStore: SessionStore {
    /// The store that all connections share.
    final class Shared: Sendable {
        private struct State {
            var model = SessionStoreModel()
            var listeners: [@Sendable (StoreEvent) -> Void] = []
            var requests = 0
            /// Lease tokens seen; each belongs to one node's request for one session.
            var tokens: Set<String> = []
        }

        private let state = Mutex(State())
        private let began = ContinuousClock.now

        /// Number of requests.
        var requests: Int { state.withLock { $0.requests } }

        /// Suspends until `nodes` nodes have requested a lease.
        func isWanted(by nodes: Int) async {
            await Bell.shared.wait { self.state.withLock { $0.tokens.count } >= nodes }
        }

        fileprivate func note(_ request: StoreRequest) {
            guard case .acquire(_, let token, _) = request else { return }
            state.withLock { _ = $0.tokens.insert(token.text) }
            Bell.shared.ring()
        }

        fileprivate func listen(_ listener: @escaping @Sendable (StoreEvent) -> Void) {
            state.withLock { $0.listeners.append(listener) }
        }

        /// Sends no more events.
        func close() { state.withLock { $0.listeners = [] } }

        fileprivate func change<Value: Sendable>(_ body: (inout SessionStoreModel, Int64) -> Value) -> Value {
            let now = 1_700_000_000_000 + Int64((ContinuousClock.now - began) / .milliseconds(1))
            let (value, events, listeners) = state.withLock { state in
                state.requests += 1
                let value = body(&state.model, now)
                return (value, state.model.takeEvents(), state.listeners)
            }
            for event in events { for listener in listeners { listener(event) } }
            return value
        }
    }

    private(set) var isReachable = false
    var onEvent: ((StoreEvent) -> Void)?
    private let shared: Shared
    private let loop: EventLoop
    private var subscriptions: Set<String> = []

    init(_ shared: Shared, loop: EventLoop) {
        self.shared = shared
        self.loop = loop
    }

    func connect() {
        isReachable = true
        let bound = LoopBound(self, to: loop)
        shared.listen { [loop] event in loop.execute { bound.value.receive(event) } }
        later { self.onEvent?(.connected) }
    }

    func close() { isReachable = false }

    func send(_ request: StoreRequest, for name: String, _ completion: @escaping (StoreReply?) -> Void) {
        let reply = shared.change { $0.carryOut(request, for: name, now: $1) }
        // Events of other nodes may overtake the answer, as between two connections.
        shared.note(request)
        later { completion(reply) }
    }

    func subscribe(to name: String) { subscriptions.insert(name) }

    func readAttempts(_ completion: @escaping (SharedAttempts?) -> Void) {
        let known = shared.change { model, _ in
            SharedAttempts(count: model.latchCount, latches: Array(model.latches.values), usedCodes: model.usedCodes)
        }
        later { completion(known) }
    }

    func closeLatches(_ latches: [SharedLatch], _ completion: @escaping (Bool) -> Void) {
        shared.change { $0.close(latches, now: $1) }
        later { completion(true) }
    }

    func openLatches(of challenge: String, _ completion: @escaping (Int?) -> Void) {
        let count = shared.change { $0.open(challenge: challenge, now: $1) }
        later { completion(count) }
    }

    func markUsed(_ codes: UsedCodes, _ completion: @escaping (Bool) -> Void) {
        shared.change { $0.markUsed(codes, now: $1) }
        later { completion(true) }
    }

    private func later(_ body: @escaping () -> Void) {
        let bound = LoopBound(body, to: loop)
        loop.execute { bound.value() }
    }

    private func receive(_ event: StoreEvent) {
        if case .sessionChanged(let name, _) = event, !subscriptions.contains(name) { return }
        onEvent?(event)
    }
}

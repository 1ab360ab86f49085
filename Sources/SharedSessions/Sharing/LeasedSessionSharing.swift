// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
package import ChallengeHandling
internal import EventLoop
internal import Synchronization

/// Parts of a node that sharing uses.
package struct SharingContext: Sendable {
    let gate: SharedAttemptGate
    let limits: SessionLimits
    let credentialVersions: CredentialVersions?
    let observer: any LoginObserver
    let version: @Sendable (Credential) -> [UInt8]
    let wallClock: @Sendable () -> Int64

    /// Parts of a node. `version` is the keyed digest under which `credentialVersions` knows a value, `wallClock` returns ms since 1970.
    package init(
        gate: SharedAttemptGate, limits: SessionLimits, credentialVersions: CredentialVersions?,
        observer: any LoginObserver, version: @escaping @Sendable (Credential) -> [UInt8],
        wallClock: @escaping @Sendable () -> Int64
    ) {
        self.gate = gate
        self.limits = limits
        self.credentialVersions = credentialVersions
        self.observer = observer
        self.version = version
        self.wallClock = wallClock
    }
}

/// Shares sessions through a session store. The node that holds the lease logs in, and the others use its session.
package final class LeasedSessionSharing: SessionSharing {
    /// Lifetime at the session store of a session without an end. Nodes that hold it keep using it.
    private static let longestLifetime: Int64 = 86_400_000
    /// Number of unusable sessions that are tried before this node establishes its own.
    private static let rounds = 4

    /// The plan in force, and those that logins may still have or may have already, by generation.
    private struct Plans {
        var present = SharingPlan()
        var others: [UInt64: SharingPlan] = [:]

        /// The plan of that generation; nil if its configuration was replaced long ago.
        subscript(generation: UInt64) -> SharingPlan? {
            generation == present.sources.generation ? present : others[generation]
        }
    }

    private let context: SharingContext
    private let sealer: SessionSealer
    private let times: LeaseTimes
    private let plans = Mutex(Plans())
    private let coordinator = LeaseCoordinatorHandle()
    private let counted: Mutex<SharingStatistics>
    private let onStoreChange: @Sendable (SharingStatistics) -> Void
    private let random: @Sendable () -> Double

    /// Sharing that has not begun. `onStoreChange` is called on a worker's thread when the store becomes reachable or unreachable.
    package init(
        _ context: SharingContext, digests: SharedDigests, times: LeaseTimes,
        onStoreChange: @escaping @Sendable (SharingStatistics) -> Void = { _ in },
        random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
    ) {
        self.context = context
        self.onStoreChange = onStoreChange
        self.random = random
        self.times = times
        sealer = SessionSealer(digests: digests, version: context.version)
        var statistics = SharingStatistics()
        statistics.since = context.wallClock()
        counted = Mutex(statistics)
    }

    /// Reachability of the session store, and counts of shared logins.
    package var statistics: SharingStatistics { counted.withLock { $0 } }

    // MARK: Lifecycle

    /// Adds a plan that is about to be in force: its logins may begin before `serve`.
    package func prepare(_ plan: SharingPlan) {
        plans.withLock { $0.others = [plan.sources.generation: plan] }
    }

    /// Replaces the plan of the sessions that are shared. Logins of the former one end under the former names.
    package func serve(_ plan: SharingPlan) {
        plans.withLock { plans in
            plans.others = [plans.present.sources.generation: plans.present]
            plans.present = plan
        }
        subscribe()
    }

    /// Begins to share the sessions of `services` on some worker. `makeStore` is called on its thread.
    package func begin(
        _ services: ClientServices,
        _ makeStore: @escaping @Sendable (ClientRuntime) throws -> any SessionStore
    ) {
        coordinator.beginOpening()
        services.roster.onSomeWorker { [self] runtime in
            let store: any SessionStore
            do {
                store = try makeStore(runtime)
            } catch {
                coordinator.close()
                return updateStatistics { $0.reason = "\(error)" }
            }
            let opened = LeaseCoordinator(
                loop: runtime.loop, store: store, gate: context.gate, times: times, random: random,
                callbacks: callbacks(services, on: runtime.loop))
            guard coordinator.open(opened, on: runtime.loop) else { return }
            context.gate.watchUnreported { [coordinator] in coordinator.execute { $0?.reportAttempts() } }
            opened.start()
            subscribe()
        }
    }

    private func callbacks(_ services: ClientServices, on loop: EventLoop) -> LeaseCoordinator.Callbacks {
        LeaseCoordinator.Callbacks(
            adoptSession: { key, name, bytes in
                Task(executorPreference: loop) { await self.adoptSession(key, name, bytes, services.roster) }
            },
            dropSession: { key in
                _ = self.context.gate.change { $0.sessions.drop { $0 == key } }
                services.roster.refreshSnapshots()
            },
            offerSession: { key, name in Task(executorPreference: loop) { await self.offerSession(key, name) } },
            openLatches: { services.latchesOpenedElsewhere($0) },
            updateStatistics: { self.updateStatistics($0) })
    }

    /// Ends the sharing; to be called before the workers end.
    package func end() {
        // The watcher retains the coordinator, which indirectly retains the gate.
        context.gate.watchUnreported(nil)
        coordinator.close { $0.stop() }
    }

    // MARK: The port

    /// Establishes the session of `key`; see `SessionSharing`.
    package func logIn(
        _ key: SessionKey, in generation: UInt64, isRenewal: Bool, by login: () async -> Result<Session, LoginFailure>
    ) async -> Result<Session, LoginFailure>? {
        guard let plan = plans.withLock({ $0[generation] }), let name = plan.name(of: key) else { return await login() }
        for _ in 0..<Self.rounds {
            switch await requestSession(key, name, isRenewal: isRenewal) {
            case .logIn:
                let result = await login()
                await reportLogin(key, name, result, plan.sources)
                return result
            case .session(let bytes):
                // One that could not be adopted at its time may have expired since.
                if let opened = await sealer.opened(bytes, of: key, as: name, asking: plan.sources),
                    context.wallClock() < opened.session.expiresAt ?? .max
                {
                    tookSession(key, opened)
                    var session = opened.session
                    session.isTakenOver = true
                    return .success(session)
                }
                updateStatistics { $0.unusable += 1 }
            case .failure(let bytes): return .failure(sealer.openedFailure(bytes, of: key, as: name))
            case .leftToOther: return nil
            }
        }
        return await login()
    }

    /// Returns true if the session of `key` is shared.
    package func isShared(_ key: SessionKey) -> Bool { sharedName(of: key) != nil }

    /// Returns true if the configuration of `generation` shares the session of `key`.
    package func isShared(_ key: SessionKey, in generation: UInt64) -> Bool {
        plans.withLock { $0[generation]?.name(of: key) } != nil
    }

    /// Ends the sessions of `keys` on all nodes.
    package func dropSessions(of keys: [SessionKey]) {
        let names = keys.compactMap(sharedName)
        coordinator.execute { $0?.dropSessions(names) }
    }

    /// Opens the latches of a challenge on all other nodes.
    package func unlatch(_ challenge: String) { coordinator.execute { $0?.openLatches(of: challenge) } }

    /// Forgets the failures of other nodes' logins.
    package func forgetFailures() { coordinator.execute { $0?.forgetFailures() } }

    // MARK: Logins

    private var present: SharingPlan { plans.withLock { $0.present } }

    private func sharedName(of key: SessionKey) -> SharingPlan.SharedName? { present.name(of: key) }

    private func requestSession(
        _ key: SessionKey, _ name: SharingPlan.SharedName, isRenewal: Bool
    ) async -> LeaseCoordinator.Decision {
        let decision = OneShot<LeaseCoordinator.Decision>()
        coordinator.execute { coordinator in
            guard let coordinator else { return decision.finish(.logIn) }
            coordinator.requestSession(key, name, isRenewal: isRenewal) { decision.finish($0) }
        }
        return await decision.wait()
    }

    private func reportLogin(
        _ key: SessionKey, _ name: SharingPlan.SharedName, _ result: Result<Session, LoginFailure>,
        _ sources: PlanSources
    ) async {
        let event: LeaseMachine.Event
        switch result {
        case .success(let session):
            let sealed = await sealed(session, key, name, sources, establishedAt: context.wallClock())
            event = .loginSucceeded(session: sealed, lifetime: lifetime(of: session))
        case .failure(let failure): event = eventOf(failure, name)
        }
        coordinator.execute { $0?.reportLogin(event, as: name) }
    }

    /// Returns the event of a failure. Only failures that other nodes would meet as well are shared.
    private func eventOf(_ failure: LoginFailure, _ name: SharingPlan.SharedName) -> LeaseMachine.Event {
        guard let pause = context.limits.sharedPause(after: failure, now: context.wallClock()),
            let bytes = sealer.sealed(failure, as: name)
        else { return .loginCancelled }
        return .loginFailed(
            bytes, pause: .milliseconds(pause.first), longestPause: .milliseconds(pause.longest), latches: [])
    }

    private func sealed(
        _ session: Session, _ key: SessionKey, _ name: SharingPlan.SharedName, _ sources: PlanSources,
        establishedAt: Int64
    ) async -> [UInt8]? {
        let versions = context.credentialVersions?.versions(of: key) ?? [:]
        return await sealer.sealed(
            session, of: key, as: name, asking: sources, establishedAt: establishedAt, versions: versions)
    }

    private func lifetime(of session: Session) -> Duration {
        let now = context.wallClock()
        return .milliseconds(
            session.expiresAt.map { max(1, min($0.saturatingSubtract(now), Self.longestLifetime)) }
                ?? Self.longestLifetime)
    }

    // MARK: Sessions of other nodes

    private func offerSession(_ key: SessionKey, _ name: SharingPlan.SharedName) async {
        let plan = present
        // A session of another configuration must not get the name of this one.
        guard plan.name(of: key) == name, let held = context.gate.held(key), !held.isExpired(at: context.wallClock()),
            let bytes = await sealed(held.session, key, name, plan.sources, establishedAt: held.establishedAt)
        else { return }
        let lifetime = lifetime(of: held.session)
        coordinator.execute { $0?.offerSession(bytes, lifetime: lifetime, as: name) }
    }

    private func adoptSession(
        _ key: SessionKey, _ name: SharingPlan.SharedName, _ bytes: [UInt8], _ roster: WorkerRoster
    ) async {
        let plan = present
        let opened = await sealer.opened(bytes, of: key, as: name, asking: plan.sources)
        if opened == nil { updateStatistics { $0.unusable += 1 } }
        // Neither the name nor the value of a configuration that was replaced meanwhile counts.
        let isPresent = plan.name(of: key) == name && present.sources.generation == plan.sources.generation
        guard let opened, isPresent,
            context.gate.adopt(key, opened.session, establishedAt: opened.establishedAt, replacing: true)
        else { return }
        coordinator.execute { $0?.tookSession(bytes, as: name) }
        tookSession(key, opened)
        roster.refreshSnapshots()
    }

    private func tookSession(_ key: SessionKey, _ opened: SessionSealer.OpenedSession) {
        updateStatistics { $0.taken += 1 }
        context.credentialVersions?.record(key, opened.versions)
        context.observer.sessionShared(key)
    }

    private func subscribe() {
        let plan = present
        let sessions = plan.keys.compactMap { key in plan.name(of: key).map { (key, $0) } }
        coordinator.execute { $0?.subscribe(to: sessions) }
    }

    private func updateStatistics(_ change: (inout SharingStatistics) -> Void) {
        let changed = counted.withLock { statistics -> SharingStatistics? in
            let before = (statistics.isStoreReachable, statistics.reason)
            change(&statistics)
            if (statistics.isStoreReachable, statistics.reason) == before { return nil }
            if statistics.isStoreReachable != before.0 { statistics.since = context.wallClock() }
            return statistics
        }
        if let changed { onStoreChange(changed) }
    }
}

/// Selects the sessions that a node shares, and names them.
package struct SharingPlan: Sendable {
    /// Name of a session at the session store, and the digest of its configuration.
    package struct SharedName: Sendable, Equatable {
        /// Equal on all nodes that configure the session's login alike.
        package var text: String
        /// Digest of that configuration; a session of another configuration is not used.
        package var configuration: [UInt8]

        /// A name.
        package init(text: String, configuration: [UInt8]) {
            self.text = text
            self.configuration = configuration
        }
    }

    /// Sessions of the default scopes, which are subscribed to from the start.
    package var keys: [SessionKey]
    /// Credential sources of the same configuration.
    package let sources: PlanSources
    private let nameOf: @Sendable (SessionKey) -> SharedName?

    /// A plan. `name` returns the shared name of a session of any scope, `nil` if each node establishes its own.
    package init(
        keys: [SessionKey] = [], sources: PlanSources = PlanSources(FixedCredentials()),
        name: @escaping @Sendable (SessionKey) -> SharedName? = { _ in nil }
    ) {
        self.keys = keys
        self.sources = sources
        nameOf = name
    }

    /// Returns the shared name of a session; `nil` if each node establishes its own.
    package func name(of key: SessionKey) -> SharedName? { nameOf(key) }
}

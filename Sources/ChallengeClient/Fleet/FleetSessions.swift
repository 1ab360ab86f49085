// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import EventLoop
internal import Synchronization

/// The sessions that this host shares with the other hosts of its fleet, through a session engine: one of them logs in, the others use
/// what it has won.
///
/// It stands between a login that is about to begin and its beginning; a request on a session that is held never comes by here.
package final class FleetSessions: Sendable {
    /// A server's session that has no end is forgotten by the engine after so long; whoever uses it goes on.
    private static let longestLife: Int64 = 86_400_000
    /// How many sessions that are of no use here are looked at, one after the other, before this host wins its own.
    private static let rounds = 4
    private let gate: SharedAttemptGate
    private let material: FleetMaterial
    private let limits: SessionLimits
    private let times: FleetTimes
    private let plan = Mutex(FleetPlan())
    private let desk = DeskAccess()
    private let counted: Mutex<FleetFigures>
    private let onEngine: @Sendable (FleetFigures) -> Void

    /// Sessions that nobody shares yet: see `begin`. `onEngine` is told when the engine has come or gone, on a worker's thread.
    package init(
        material: FleetMaterial, gate: SharedAttemptGate, limits: SessionLimits, times: FleetTimes,
        onEngine: @escaping @Sendable (FleetFigures) -> Void = { _ in }
    ) {
        self.onEngine = onEngine
        self.material = material
        self.gate = gate
        self.limits = limits
        self.times = times
        var figures = FleetFigures()
        figures.since = material.now()
        counted = Mutex(figures)
    }

    /// How that does.
    package var figures: FleetFigures { counted.withLock { $0 } }

    /// Which sessions are shared from now on.
    package func serves(_ plan: FleetPlan) {
        self.plan.withLock { $0 = plan }
        follow()
    }

    /// Begins to share the sessions of `services`, on some worker; `makeEngine` is called on its thread.
    package func begin(
        _ services: ClientServices,
        _ makeEngine: @escaping @Sendable (ClientRuntime) throws -> any SessionEngine
    ) {
        desk.begin()
        services.roster.onSomeWorker { [self] runtime in
            let loop = runtime.loop
            let engine: any SessionEngine
            do {
                engine = try makeEngine(runtime)
            } catch {
                desk.close()
                return count { $0.reason = "\(error)" }
            }
            let opened = FleetDesk(
                loop: loop, engine: engine, gate: gate, times: times, chance: services.chance,
                callbacks: FleetDesk.Callbacks(
                    adopt: { key, place, bytes in
                        Task(executorPreference: loop) { await self.adopt(key, place, bytes, services) }
                    },
                    drop: { key in
                        _ = self.gate.change { $0.sessions.drop { $0 == key } }
                        services.roster.refreshSnapshots()
                    },
                    offer: { key, place in
                        Task(executorPreference: loop) { await self.offer(key, place, services) }
                    },
                    opened: { services.fleetOpened($0) },
                    count: { self.count($0) }))
            guard desk.open(opened, on: loop) else { return }
            gate.watchUntold { [desk] in desk.onDesk { $0?.closeLatches() } }
            opened.begin()
            follow()
        }
    }

    /// Shares no more; to be called before the workers end.
    package func end() {
        // It holds the desk, which holds what holds the gate.
        gate.watchUntold(nil)
        desk.close { $0.end() }
    }

    /// Wins the session of `key`: by `login`, when it is this host's turn, or from another host. `nil` where that renews it, and the one
    /// that is held serves meanwhile. `services`: those that `begin` was given.
    package func win(
        _ key: SessionKey, isRenewal: Bool, _ services: ClientServices,
        login: () async -> Result<Session, LoginFailure>
    ) async -> Result<Session, LoginFailure>? {
        guard let place = plan.withLock({ $0.place(of: key) }) else { return await login() }
        for _ in 0..<Self.rounds {
            switch await turn(key, place, isRenewal: isRenewal) {
            case .login:
                let result = await login()
                await tell(key, place, result, services)
                return result
            case .session(let bytes):
                if let opened = await material.opened(bytes, of: key, at: place) {
                    count { $0.taken += 1 }
                    services.ledger?.note(key, opened.versions)
                    services.observer.sessionShared(key)
                    return .success(opened.session)
                }
                count { $0.unusable += 1 }
            case .failure(let bytes):
                let failure = material.fleet.sealing.opened(bytes, as: place.name).flatMap(LoginFailure.init(shared:))
                return .failure(
                    failure
                        ?? LoginFailure(
                            .failed, challenge: key.challenge,
                            detail: "Another host has failed to log in, and its reason cannot be read here."))
            case .left: return nil
            }
        }
        return await login()
    }

    /// These sessions were dropped: they end for all hosts.
    package func drop(_ keys: [SessionKey]) {
        let places = plan.withLock { plan in keys.compactMap { plan.place(of: $0) } }
        desk.onDesk { $0?.drop(places) }
    }

    /// Returns whether a session is the fleet's, and so not this host's alone to end.
    package func shares(_ key: SessionKey) -> Bool { plan.withLock { $0.place(of: key) } != nil }

    /// Has the latches of a challenge opened on all other hosts.
    package func unlatch(_ challenge: String) { desk.onDesk { $0?.open(challenge) } }

    /// A credential has changed, or whatever else makes another try worth its while.
    package func forgetFailures() { desk.onDesk { $0?.forgetFailures() } }

    // MARK: Helpers

    private func turn(_ key: SessionKey, _ place: FleetPlan.Place, isRenewal: Bool) async -> FleetDesk.Turn {
        let race = Race<FleetDesk.Turn>()
        desk.onDesk { desk in
            guard let desk else { return race.end(.login) }
            desk.want(key, place, isRenewal: isRenewal) { race.end($0) }
        }
        return await withCheckedContinuation { race.begin($0) }
    }

    /// Says to the engine how a login has ended, by the machine of that session.
    private func tell(
        _ key: SessionKey, _ place: FleetPlan.Place, _ result: Result<Session, LoginFailure>, _ services: ClientServices
    ) async {
        let event: FleetMachine.Event
        switch result {
        case .success(let session):
            let bytes = await sealed(session, key, place, wonAt: material.now(), services)
            event = .won(session: bytes, life: life(of: session))
        case .failure(let failure): event = ended(failure, place)
        }
        desk.onDesk { $0?.tell(place, event) }
    }

    /// What other hosts are told of a failure: what they would learn, too, by trying.
    private func ended(_ failure: LoginFailure, _ place: FleetPlan.Place) -> FleetMachine.Event {
        guard let pause = limits.sharedPause(after: failure, now: material.now()) else { return .cancelled }
        guard let bytes = material.fleet.sealing.sealed(failure.shared, as: place.name) else { return .cancelled }
        return .failed(
            bytes, pause: .milliseconds(pause.first), longest: .milliseconds(pause.longest), latches: [])
    }

    private func sealed(
        _ session: Session, _ key: SessionKey, _ place: FleetPlan.Place, wonAt: Int64, _ services: ClientServices
    ) async -> [UInt8]? {
        let versions = services.ledger?.versions(of: key) ?? [:]
        return await material.sealed(session, of: key, at: place, wonAt: wonAt, versions: versions)
    }

    private func life(of session: Session) -> Duration {
        .milliseconds(
            session.expiresAt.map { max(1, min($0.saturatingSubtract(material.now()), Self.longestLife)) }
                ?? Self.longestLife)
    }

    /// Offers what is held here to an engine that may have lost it.
    private func offer(_ key: SessionKey, _ place: FleetPlan.Place, _ services: ClientServices) async {
        guard let held = gate.held(key), !held.isExpired(at: material.now()),
            let bytes = await sealed(held.session, key, place, wonAt: held.wonAt, services)
        else { return }
        let life = life(of: held.session)
        desk.onDesk { $0?.offer(bytes, life: life, at: place) }
    }

    private func adopt(
        _ key: SessionKey, _ place: FleetPlan.Place, _ bytes: [UInt8], _ services: ClientServices
    ) async {
        guard let opened = await material.opened(bytes, of: key, at: place) else {
            count { $0.unusable += 1 }
            desk.onDesk { $0?.keep(bytes, at: place) }
            return
        }
        guard gate.adopt(key, opened.session, wonAt: opened.wonAt, replacing: true) else {
            desk.onDesk { $0?.keep(bytes, at: place) }
            return
        }
        count { $0.taken += 1 }
        services.ledger?.note(key, opened.versions)
        services.observer.sessionShared(key)
        services.roster.refreshSnapshots()
    }

    private func follow() {
        let followed = plan.withLock { plan in plan.keys.compactMap { key in plan.place(of: key).map { (key, $0) } } }
        desk.onDesk { $0?.follow(followed) }
    }

    private func count(_ change: (inout FleetFigures) -> Void) {
        let changed = counted.withLock { figures -> FleetFigures? in
            let before = (figures.isEngineThere, figures.reason)
            change(&figures)
            if (figures.isEngineThere, figures.reason) == before { return nil }
            if figures.isEngineThere != before.0 { figures.since = material.now() }
            return figures
        }
        if let changed { onEngine(changed) }
    }
}

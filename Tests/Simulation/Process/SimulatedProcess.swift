// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Credentials
import EventLoop
import Glibc
import Kerberos
import Logging
import Secrets
import Settings
import SharedSessions

@testable import Admin
@testable import ChallengeClient
@testable import CountersignDaemon
@testable import Proxy

/// One process of the daemon: its workers, on loops that the simulation turns, with everything that is theirs.
final class SimulatedProcess: @unchecked Sendable {
    private let simulation: Simulation
    let disk: SimulatedDisk
    /// Its number among the nodes.
    let node: Int
    private let sharing: SimulatedSharing?
    let services: ClientServices
    private let material: LoginMaterial
    private var loops: [EventLoop] = []
    private var workers: [Worker] = []
    private var acceptors: [[ListenerKind: Acceptor]] = []
    private let peers = WorkerPeers()
    /// Listening sockets, a Unix socket and a TCP one, without connections: callers are pairs of sockets.
    private let listening: [Bool: Int32]
    private let counts: SharedCounts
    private var quotas: [ListenerKind: ConnectionQuotas] = [:]
    private let callerTokens = CallerTokens()
    private let status: SimulatedStatus
    /// True if the last caller waits for another worker, which may have a connection to close.
    private(set) var isLastWaiting = false
    private let sources: PlanSources
    private var plans: [UpstreamPlan] = []
    private let traffic = Traffic()
    private(set) var isDraining = false
    /// True if the last connection is closed.
    private(set) var isDrained = false

    /// Creates the process of a node. `store`: the session store of several.
    init(
        in simulation: Simulation, settings: Settings, workers count: Int, node: Int = 0,
        sharingBy store: SimulatedSessionStore? = nil
    ) throws {
        self.simulation = simulation
        self.node = node
        let disk = simulation.disks[node]
        self.disk = disk
        let traffic = traffic
        let now: @Sendable () -> Int64 = { simulation.now }
        let chance: @Sendable () -> Double = { simulation.chance.fraction() }
        let digests = try store.map { _ in try SimulatedSharing.digests() }
        let gate = SharedAttemptGate(
            store: AttemptWriter(disk), sharedDigests: { digests?.digests(of: $1, rejectedFor: $0) ?? [] },
            chance: chance, now: now)
        sources = PlanSources(SimulatedCredentials(simulation, of: gate, node: node))
        let versions = CredentialVersions(digest: { disk.digest(of: $0) })
        let status = SimulatedStatus(simulation, next: LoginNotes(simulation, node: node))
        self.status = status
        if let store, let digests {
            let context = SharingContext(
                gate: gate, limits: SessionLimits(), credentialVersions: versions,
                observer: status.meter, version: { disk.digest(of: $0) }, wallClock: now)
            sharing = SimulatedSharing(context, digests, through: store, chance: chance)
        } else {
            sharing = nil
        }
        services = ClientServices(
            gate: gate, state: disk, wallClock: now, chance: chance, observer: status.meter,
            credentialVersions: versions, sharing: sharing?.sharing,
            transport: TransportFactory { SimulatedTransport($0, of: traffic, node: node, in: simulation) })
        material = LoginMaterial(
            digests: CryptoDigests(), keys: SimulatedSigningKeys(), messageKeys: CryptoMessageKeys(),
            tickets: SystemTicketProvider { _ in }, hasNTLM: false)
        let listeners = simulation.setting.listeners
        listening = [
            true: try listeners.point(isUnix: node == 0).open(), false: try listeners.point(isUnix: false).open(),
        ]
        let exchanges = SharedCount(limit: 64)
        counts = SharedCounts(callers: ConnectionQuotas(limit: listeners.limit), exchanges: exchanges)
        let figures = ProxyFigures()
        let log = ExchangeLog(logger: Logger(label: "exchange") { _ in WatchedLog(simulation) }, wallClock: now)
        for number in 0..<count {
            let loop = try EventLoop(clock: simulation.clock)
            loop.turnOnce()
            loops.append(loop)
            workers.append(
                try Worker(
                    loop: loop, number: number, services: services, limits: WorkerLimits(), counts: counts,
                    upstreamConnections: 16, figures: figures, log: log, peers: peers))
        }
        let members = workers.enumerated().map {
            WorkerMember(
                number: $0.offset, loop: loops[$0.offset], worker: LoopBound($0.element, to: loops[$0.offset]))
        }
        peers.introduce(members)
        status.begin(services, WorkerReadings(members: members, figures: figures, counts: counts))
        for token in CallerToken.all(hasTwins: listeners.hasTwins) {
            callerTokens.set(Secret(token.text), of: token.name)
        }
        try apply(settings)
        sharing?.begin(services, settings, plans)
    }

    // MARK: Settings

    /// Applies settings, at the start and at a reload.
    func apply(_ settings: Settings) throws {
        let composition = ProxyComposition(
            settings: settings, material: material, sources: sources, callerTokens: callerTokens)
        let plan = try composition.plan(admin: AdminService(sources: status.sources))
        plans = plan.upstreams.flatMap(\.forEverybody)
        status.setUpstreams(plans)
        for worker in workers { worker.apply(plan, sockets: []) }
        for (kind, listener) in zip(Listeners.kinds, plan.listeners) { try apply(listener, as: kind) }
        counts.callers.setLimit(settings.limits.callers)
        counts.callers.reserve(for: Set(plan.listeners.filter { !$0.isLocal }.map(\.name)))
        services.gate.change { $0.refusals = ResourceRefusals() }
    }

    private func apply(_ listener: ListenerPlan, as kind: ListenerKind) throws {
        let isUnix = simulation.setting.listeners.isUnix(kind)
        let point = simulation.setting.listeners.point(isUnix: isUnix)
        let callers = quotas[kind] ?? ConnectionQuotas(limit: listener.callers)
        callers.setLimit(listener.callers)
        quotas[kind] = callers
        guard let descriptor = listening[isUnix] else { return }
        if acceptors.isEmpty { acceptors = workers.map { _ in [:] } }
        for (number, worker) in workers.enumerated() {
            if let acceptor = acceptors[number][kind] {
                acceptor.plan = listener
            } else {
                let socket = ListenSocket(point: point, descriptor: descriptor, file: nil, callers: callers)
                acceptors[number][kind] = Acceptor(socket: socket, plan: listener, worker: worker)
            }
        }
    }

    /// The number of connections that a listener may be sure of.
    var reserved: Int { counts.callers.limit / (2 * Listeners.kinds.count { $0 != .adminTCP && $0 != .adminUnix }) }

    // MARK: Turning

    /// Turns one of the loops.
    func turn() { loops[simulation.chance.below(loops.count)].turnOnce() }

    /// Turns all loops until their time is that of the clock.
    func catchUp() {
        for loop in loops {
            var left = 1_000
            while loop.now < simulation.clock.now, left > 0 {
                loop.turnOnce()
                left -= 1
            }
        }
    }

    /// Turns all loops until they have nothing left to do.
    func settle() {
        for _ in 0..<8 { for loop in loops { loop.turnOnce() } }
    }

    /// Returns the caller's end of a new connection to one of the workers, from a program of that user.
    func connect(to kind: ListenerKind = .common, as user: UInt32 = 0) -> Int32? {
        guard !isDraining, let pair = LocalUsers.connection(of: user) else { return nil }
        let number = simulation.chance.below(workers.count)
        guard let acceptor = acceptors[number][kind] else { return nil }
        workers[number].accept(pair.daemon, by: acceptor)
        isLastWaiting = workers[number].waiting[pair.daemon] != nil
        return pair.caller
    }

    // MARK: Tasks of the main thread

    /// Does the daemon's periodic work.
    func tick() {
        services.roster.maintainSessions(of: LoginIndex(plans))
        services.roster.recover(LoginIndex(plans))
        services.roster.refreshSnapshots()
        services.gate.retryWrites()
    }

    /// Opens the latches of a challenge, on all nodes.
    func unlatch(_ challenge: String) {
        services.gate.unlatch(challenge)
        isUnlatched(challenge)
    }

    /// Notes that an operator has opened the latches of a challenge, and tells the other node.
    func isUnlatched(_ challenge: String) {
        disk.unlatched(challenge)
        sharing?.sharing.unlatch(challenge)
    }

    /// Looks at the credentials, as the watch does.
    func lookAtCredentials() {
        guard let versions = services.credentialVersions else { return }
        for server in simulation.servers {
            let name = server.protection.account.name
            versions.recordLookup(of: name, as: simulation.credential(named: name), number: versions.beginLookup())
        }
        let outdated = versions.outdated
        if !outdated.isEmpty { services.roster.replaceOutdated(outdated, of: LoginIndex(plans)) }
    }

    /// Returns true if a latch was closed for a value before `step`.
    ///
    /// `challenge`: the only one whose latch counts; `nil` if those of several upstreams send one value to one server. `first`: the
    /// step since which it was closed, because another node learns later that an operator has opened it.
    func isLatched(
        _ account: Account, _ value: String, by challenge: String? = nil, since first: Int = 0, before step: Int
    ) -> Bool {
        simulation.servers.contains { server in
            let protection = server.protection
            guard protection.account === account, challenge == nil || challenge == protection.challengeName else {
                return false
            }
            let digest = disk.digest(of: simulation.credential(named: account.name, value, of: server))
            return disk.isClosed(protection.challengeName, digest, since: first, before: step)
        }
    }

    /// Returns true if the nodes share a latch that was closed for an account at `time` or later (ms since 1970).
    func sharesLatch(_ account: Account, since time: Int64) -> Bool {
        sharing?.store.isLatched(account, since: time) ?? false
    }

    /// The number of exchanges and logins that are not over.
    var isQuiet: Bool {
        traffic.isQuiet
            && services.gate.read({ $0.sessions.states(now: simulation.now) }).values.allSatisfy {
                if case .loggingIn = $0 { false } else { true }
            }
    }

    // MARK: The end

    /// Returns the image of all sessions, as the service manager keeps it.
    func image() -> Secret {
        let prints = SessionFingerprints(plans) { Array($0.utf8.suffix(8)) }
        let images = services.gate.read { $0.sessions.allHeld }.compactMap { key, held -> SessionImage? in
            guard let print = prints[key] else { return nil }
            return SessionImage(
                key, held, configuration: print, versions: services.credentialVersions?.versions(of: key) ?? [:])
        }
        return SessionImages.encoded(images.sorted { "\($0.key)" < "\($1.key)" })
    }

    /// Takes over the sessions of a former process, if their credentials are the same.
    func adopt(_ image: Secret) {
        let prints = SessionFingerprints(plans) { Array($0.utf8.suffix(8)) }
        for image in (try? SessionImages.decoded(image)) ?? [] {
            guard prints[image.key] == image.configuration else { continue }
            let isSame = image.versions.allSatisfy { name, version in
                simulation.credential(named: name).map { disk.digest(of: $0) == version } ?? false
            }
            guard isSame else { continue }
            let credential = image.credentialNeeded.flatMap { simulation.credential(named: $0) }
            guard let session = image.session(credential: credential, codec: prints.codec(of: image.key)) else {
                continue
            }
            if services.gate.adopt(image.key, session, establishedAt: image.establishedAt) {
                services.credentialVersions?.record(image.key, image.versions)
                simulation.logins.adopted(image.key.challenge)
            }
        }
    }

    /// Stops accepting connections and finishes what is under way.
    func drain() {
        isDraining = true
        var left = workers.count
        for worker in workers {
            worker.stopAccepting()
            worker.drain { [self] in
                left -= 1
                isDrained = left == 0
            }
        }
    }

    /// Ends a drain that takes too long.
    func turnAway() { for worker in workers { worker.turnAway() } }

    /// Ends the process: nothing leaves it any more.
    func end() {
        isDraining = true
        disk.process += 1
        traffic.cut()
        sharing?.sharing.end()
        for worker in workers { worker.abandon() }
        for _ in 0..<16 {
            settle()
            traffic.cut()
        }
        for number in workers.indices { services.roster.dismiss(worker: number) }
        peers.introduce([])
        for loop in loops {
            loop.stop()
            loop.run()
        }
        for (isUnix, descriptor) in listening.sorted(by: { $0.value < $1.value }) {
            simulation.setting.listeners.point(isUnix: isUnix && node == 0).close(descriptor)
        }
        status.end()
        traffic.clear()
        simulation.endedLoops += loops
        (workers, acceptors, loops) = ([], [], [])
    }
}

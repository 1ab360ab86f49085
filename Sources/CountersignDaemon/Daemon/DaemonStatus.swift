// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Proxy
internal import SharedSessions
internal import Synchronization
internal import System

/// Source of the admin listener's answers.
///
/// Each answer is composed from the present state of the proxy and the logins.
final class DaemonStatus: Sendable {
    private struct State: Sendable {
        var isAccepting = false
        var logins = LoginIndex([])
        var reported = ReportedLogins()
        var places: [String: UpstreamPlace] = [:]
        var reload: ReloadReading
        var listeners: [String] = []
    }

    private let context: DaemonContext
    private let readings: WorkerReadings
    private let outages: @Sendable () -> [String: UpstreamOutage]
    private let configuration: String
    private let commands: CommandRunner
    private let history = ProxyHistory()
    private let reports = ReportThread()
    private let startedAt: Int64
    private let pulse: WorkerPulse
    private let state: Mutex<State>

    /// `configuration` is the path of the file, `stateDirectory` that of the state if it is not the usual one.
    init(
        context: DaemonContext, readings: WorkerReadings, pulse: WorkerPulse, configuration: String,
        stateDirectory: String?,
        outages: @escaping @Sendable () -> [String: UpstreamOutage]
    ) {
        self.outages = outages
        self.configuration = configuration
        commands = CommandRunner(
            configuration: configuration, stateDirectory: stateDirectory, gate: context.services.gate)
        let startedAt = SystemClock.wallClock()
        self.startedAt = startedAt
        state = Mutex(State(reload: ReloadReading(startedAt: startedAt)))
        self.pulse = pulse
        self.context = context
        self.readings = readings
    }

    /// Records if the listeners accept callers.
    func setAccepting(_ isAccepting: Bool) { state.withLock { $0.isAccepting = isAccepting } }

    /// Replaces the upstreams that are served, and the listeners that lead to them.
    func setUpstreams(_ upstreams: [UpstreamPlan], listeners: [ListenerPlan]) {
        var ways: [String: [String]] = [:]
        for listener in listeners { listener.addWays(to: &ways) }
        let places = upstreams.reduce(into: [:]) { places, upstream in
            places[upstream.name] = UpstreamPlace(
                url: upstream.base.description, listeners: ways[upstream.name] ?? [])
        }
        let (logins, reported) = (LoginIndex(upstreams), ReportedLogins(upstreams))
        state.withLock { ($0.logins, $0.reported, $0.places) = (logins, reported, places) }
        context.services.gate.serve(logins)
        context.latchedValues.setLogins(upstreams.flatMap(\.logins.all))
    }

    /// Replaces the addresses of the listeners.
    func setListeners(_ listeners: [String]) { state.withLock { $0.listeners = listeners } }

    /// Records the outcome of a reload: the reason of a refusal, or nil.
    func recordReload(refusal: String?) {
        state.withLock { $0.reload.record(refusal: refusal, now: SystemClock.wallClock()) }
    }

    /// Establishes and renews the sessions that are held without a request. Called periodically.
    func maintainSessions() {
        context.services.roster.maintainSessions(of: state.withLock { $0.logins })
        context.services.roster.refreshSnapshots()
    }

    /// Replaces the sessions `keys`, whose credentials have changed.
    func replaceOutdated(_ keys: Set<SessionKey>) {
        context.services.roster.replaceOutdated(keys, of: state.withLock { $0.logins })
    }

    /// Functions that the admin service calls.
    var sources: AdminService.Sources {
        AdminService.Sources(
            report: { self.report() },
            ask: { self.readings.ask($0) },
            metrics: { self.metrics() },
            page: { self.page() },
            unlatch: { self.unlatch($0, $1, $2) },
            dropSessions: { name in
                let meant = Set(
                    self.state.withLock { $0.logins }.all.filter { name.map($0.isMeant) ?? true }.map(\.name))
                return self.drop { meant.contains($0.challenge) }
            },
            onThread: { [reports] in reports.execute($0) }, run: { [commands] in commands.run($0, $1) })
    }

    /// Opens the latches of a challenge. The name of an upstream's login means all challenges that it answers.
    private func unlatch(
        _ name: String, _ opened: @escaping @Sendable (OpenedLatches) -> Void, _ stored: @escaping @Sendable () -> Void
    ) {
        let logins = state.withLock { $0.logins }.all.filter { $0.name == name }
        let names = Set(logins.flatMap(\.checks).map(\.name)).union([name])
        @Sendable func open() {
            let others = names.subtracting([name]).map { context.unlatch($0) {} }.reduce(OpenedLatches(), +)
            opened(others + context.unlatch(name, whenStored: stored))
        }
        // Another process may have closed one since the state was read.
        if context.hasClosedLatch(of: names) { open() } else { context.services.gate.refresh(open) }
    }

    /// The logouts that are configured for held sessions, without shared ones.
    var pendingLogouts: [PendingLogout] {
        // Other nodes also use a shared session, so a single node does not end it.
        let own = context.services.gate.read { $0.sessions.allHeld }.filter {
            !(context.sharing?.isShared($0.key) ?? false)
        }
        return PendingLogout.all(of: own, by: state.withLock { $0.logins })
    }

    /// Drops sessions and returns their number. Logs out at their servers without waiting.
    private func drop(where which: @Sendable (SessionKey) -> Bool) -> Int {
        let held = context.services.gate.read { $0.sessions.allHeld }.filter { which($0.key) }
        let dropped = context.services.gate.change { $0.sessions.drop(where: which) }
        context.services.sharing?.dropSessions(of: dropped)
        context.services.roster.refreshSnapshots()
        context.services.roster.logOut(PendingLogout.all(of: held, by: state.withLock { $0.logins }))
        return dropped.count
    }

    /// Requests readings of the workers and adds them to the history. Called periodically.
    func sample() {
        readings.ask { [self] in history.add(readings.latest, now: SystemClock.wallClock()) }
    }

    private func page() -> StatusPage {
        let report = metrics()
        history.add(report.proxy, now: report.health.now)
        return StatusPage(
            report: report, conversations: context.conversations.conversations, intervals: history.intervals,
            recent: history.recent, places: state.withLock { $0.places })
    }

    private func metrics() -> MetricsReport {
        MetricsReport(
            health: report(), proxy: readings.latest, logins: context.loginMeter.reading,
            replay: context.services.replay.map { ReplayReading($0) }, process: .now(startedAt: startedAt),
            reload: state.withLock { $0.reload })
    }

    /// The first failing login with its remedy, and the number of others; `nil` if no login fails.
    var problem: String? {
        var failing: [String: String] = [:]
        let now = SystemClock.wallClock()
        // Only what is wrong is visited: this is asked at each tick.
        let keys = context.services.gate.read { $0.sessions.failingKeys(now: now) }
        let latches = context.presentLatches(now: now)
        let concerned =
            keys.isEmpty && latches.isEmpty ? [] : state.withLock { $0.reported }.concerned(by: keys, latches)
        for login in logins(concerned, latches, now: now) {
            if let failure = login.sessionState.failure { failing[login.challenge] = failure.detail }
        }
        guard let (name, detail) = failing.min(by: { $0.key < $1.key }) else {
            if let sentence = context.unwrittenState?.sentences.first { return "\(sentence); \(UnwrittenState.remedy)" }
            if let (name, fault) = context.callerTokens.faults?.min(by: { $0.key < $1.key }) {
                return "Callers are refused: the token of \(name) is not known: \(fault)"
            }
            guard let sharing = context.services.sharing?.statistics, !sharing.isStoreReachable else { return nil }
            return "The session store is away, this node logs in on its own: \(sharing.reason)"
        }
        let more = failing.count > 1 ? " (\(failing.count - 1) more: countersign status)" : ""
        return "\(name): \(detail)\(more)"
    }

    private func logins(
        _ logins: [ReportedLogins.Entry], _ latches: [ClosedLatch], now: Int64
    ) -> [HealthReport.Login] {
        LoginStates(of: logins, latches: latches) { [gate = context.services.gate] key in
            gate.read { $0.sessions.states(ofSiblings: key, now: now) }
        }.all
    }

    private func report() -> HealthReport {
        let (isAccepting, index, reported) = state.withLock { ($0.isAccepting, $0.logins, $0.reported) }
        let now = SystemClock.wallClock()
        // Without callers no request retries a failed login, so a readiness check does.
        if context.services.gate.read({ !$0.sessions.failingKeys(now: now).isEmpty }) {
            context.services.roster.recover(index)
        }
        let latches = context.presentLatches(now: now)
        let proxy = readings.latest
        var counts = [
            "connections": proxy.connections, "connections_accepted": proxy.acceptedConnections,
            "exchanges": Int(clamping: proxy.begunExchanges), "tunnels": proxy.tunnels,
            "local_replies": Int(clamping: proxy.replies.values.reduce(0, &+)),
        ]
        if let replay = context.services.replay {
            counts["replay_bytes_on_disk"] = replay.figures.bytesInUse
            counts["replay_budget_bytes"] = replay.limit
            counts["replayed_bytes_from_memory"] = replay.figures.bytesFromMemory
            counts["replayed_bytes_from_disk"] = replay.figures.bytesFromDisk
            counts["bodies_not_replayable"] = replay.figures.unreplayableExchanges
        }
        var report = HealthReport(
            isAccepting: isAccepting, upstreams: reported.upstreams,
            logins: logins(reported.all, latches, now: now), latches: latches,
            figures: counts, now: now, version: Version.text)
        report.isAlive = pulse.isSteady()
        report.checks = context.services.checks.all
        report.missingCallerTokens = context.callerTokens.faults
        report.sharing = context.services.sharing?.statistics
        report.outages = outages()
        report.unwritten = context.unwrittenState
        report.daemon = state.withLock {
            DaemonFacts(
                process: getpid(), startedAt: startedAt,
                configuration: ReloadRecord.path(ofConfiguration: configuration), listeners: $0.listeners,
                reload: $0.reload)
        }
        return report
    }
}

extension ListenerPlan {
    /// Adds the ways to each upstream, for people: the listener's address, with the host and path of the route if there is one.
    fileprivate func addWays(to ways: inout [String: [String]]) {
        if let fallback = router.fallback { ways[fallback, default: []].append(name) }
        for route in router.routes {
            let way = [name, (route.host ?? "") + (route.path ?? "")].filter { !$0.isEmpty }.joined(separator: " ")
            ways[route.upstream, default: []].append(way)
        }
    }
}

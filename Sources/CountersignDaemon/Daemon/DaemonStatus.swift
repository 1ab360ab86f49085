// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Proxy
internal import Synchronization

/// The answers of the admin listener: put together at each question from what the proxy and the logins know.
final class DaemonStatus: Sendable {
    private struct State: Sendable {
        var isAccepting = false
        var upstreams: [UpstreamPlan] = []
    }

    private let world: World
    private let readings: WorkerReadings
    private let history = ProxyHistory()
    private let startedAt = Process.wallClock()
    private let pulse: WorkerPulse
    private let state = Mutex(State())

    init(world: World, readings: WorkerReadings, pulse: WorkerPulse) {
        self.pulse = pulse
        self.world = world
        self.readings = readings
    }

    /// Whether the listeners accept.
    func accepts(_ isAccepting: Bool) { state.withLock { $0.isAccepting = isAccepting } }

    /// The upstreams served from now on.
    func serves(_ upstreams: [UpstreamPlan]) { state.withLock { $0.upstreams = upstreams } }

    /// Sees to the sessions that are won at the start and kept; asked for again and again.
    func keepSessions() {
        world.services.roster.keep(state.withLock { $0.upstreams })
        world.services.roster.refreshSnapshots()
    }

    /// Has sessions won anew whose credential has changed.
    func replaceOutdated(_ keys: Set<SessionKey>) {
        world.services.roster.replaceOutdated(keys, at: state.withLock { $0.upstreams })
    }

    /// What the admin service asks for.
    var sources: AdminService.Sources {
        AdminService.Sources(
            report: { self.report() },
            ask: { self.readings.ask($0) },
            metrics: { self.metrics() },
            page: { self.page() },
            unlatch: { self.world.unlatch($0) },
            dropSessions: { name in
                let meant = Set(
                    self.state.withLock { $0.upstreams }.flatMap(\.logins.all)
                        .filter { name.map($0.isMeant) ?? true }.map(\.name))
                return self.drop { meant.contains($0.challenge) }
            })
    }

    /// What is to be ended at its server before the process ends.
    var pendingLogouts: [PendingLogout] {
        // What other hosts use is not this one's to end.
        let own = world.services.gate.read { $0.sessions.allHeld }.filter {
            !(world.services.fleet?.shares($0.key) ?? false)
        }
        return PendingLogout.all(of: own, at: state.withLock { $0.upstreams })
    }

    /// Drops sessions, and has them ended at their servers, for which nobody waits. Returns how many.
    private func drop(where which: @Sendable (SessionKey) -> Bool) -> Int {
        let held = world.services.gate.read { $0.sessions.allHeld }.filter { which($0.key) }
        let dropped = world.services.gate.change { $0.sessions.drop(where: which) }
        world.services.fleet?.drop(dropped)
        world.services.roster.refreshSnapshots()
        world.services.roster.logOut(PendingLogout.all(of: held, at: state.withLock { $0.upstreams }))
        return dropped.count
    }

    /// Has what the workers do sampled; asked for again and again.
    func sample() {
        readings.ask { [self] in history.take(readings.latest, now: Process.wallClock()) }
    }

    private func page() -> StatusPage {
        let report = metrics()
        history.take(report.proxy, now: report.health.now)
        return StatusPage(
            report: report, conversations: world.conversations.conversations, intervals: history.intervals)
    }

    private func metrics() -> MetricsReport {
        MetricsReport(
            health: report(), proxy: readings.latest, logins: world.loginMeter.reading,
            replay: world.services.replay.map { ReplayReading($0) }, process: .now(startedAt: startedAt))
    }

    /// The first login that fails, with what to do, and how many more; nil where none does.
    var trouble: String? {
        let upstreams = state.withLock { $0.upstreams }
        let standings = world.services.gate.read { $0.sessions.standings(now: Process.wallClock()) }
        var failing: [String: String] = [:]
        for login in upstreams.flatMap(\.logins.all) {
            for case (let key, .failing(let failure)) in standings where login.key.isSibling(of: key) {
                failing[login.name] = failure.detail
            }
        }
        guard let (name, detail) = failing.min(by: { $0.key < $1.key }) else {
            guard let fleet = world.services.fleet?.figures, !fleet.isEngineThere else { return nil }
            return "The session engine is away, this host logs in by itself: \(fleet.reason)"
        }
        let more = failing.count > 1 ? " (\(failing.count - 1) more: countersign status)" : ""
        return "\(name): \(detail)\(more)"
    }

    private func report() -> HealthReport {
        let (isAccepting, upstreams) = state.withLock { ($0.isAccepting, $0.upstreams) }
        // Nobody may be there to ask for a login that has failed: whoever looks at readiness does.
        world.services.roster.recover(upstreams)
        let now = Process.wallClock()
        let standings = world.services.gate.read { $0.sessions.standings(now: now) }
        var logins: [HealthReport.Login] = []
        var told: Set<String> = []
        for upstream in upstreams {
            // What stands at several places, or in front of several users, is told of once.
            for login in upstream.logins.all
            where login.refusal == nil && told.insert("\(upstream.name) \(login.key)").inserted {
                // A resource may have asked for further scopes of the same login.
                let keys = standings.keys.filter(login.key.isSibling)
                for key in keys.isEmpty ? [login.key] : keys.sorted(by: { $0.scope < $1.scope }) {
                    logins.append(
                        HealthReport.Login(
                            upstream: upstream.name, challenge: login.name, credential: key.credential,
                            scope: key.scope, asks: login.asks,
                            standing: standings[key] ?? .cold))
                }
            }
        }
        let proxy = readings.latest
        var counts = [
            "connections": proxy.connections, "connections_accepted": proxy.acceptedConnections,
            "exchanges": Int(clamping: proxy.begunExchanges), "tunnels": proxy.tunnels,
            "local_replies": Int(clamping: proxy.replies.values.reduce(0, &+)),
        ]
        if let replay = world.services.replay {
            counts["replay_bytes_on_disk"] = replay.figures.bytesInUse
            counts["replay_budget_bytes"] = replay.limit
            counts["replayed_bytes_from_memory"] = replay.figures.bytesFromMemory
            counts["replayed_bytes_from_disk"] = replay.figures.bytesFromDisk
            counts["bodies_not_replayable"] = replay.figures.unreplayableExchanges
        }
        var names: [String] = []
        for upstream in upstreams where !names.contains(upstream.name) { names.append(upstream.name) }
        var report = HealthReport(
            isAccepting: isAccepting, upstreams: names, logins: logins,
            latches: world.presentLatches(now: now), figures: counts, now: now, version: Version.text)
        report.isAlive = pulse.isSteady()
        report.checks = world.services.checks.all
        report.fleet = world.services.fleet?.figures
        return report
    }
}

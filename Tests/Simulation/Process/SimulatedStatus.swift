// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling

@testable import Admin
@testable import Proxy

/// The answers of the admin listener, composed as the daemon does; without the figures of the operating system, which no seed decides.
final class SimulatedStatus: @unchecked Sendable {
    private let simulation: Simulation
    /// The last logins.
    let conversations: ConversationLog
    /// The counters of logins.
    let meter: LoginMeter
    private var services: ClientServices?
    private var readings: WorkerReadings?
    private var upstreams: [UpstreamPlan] = []
    private let startedAt: Int64

    /// Creates the status of a process and passes events of its logins on to `next`.
    init(_ simulation: Simulation, next: LoginNotes) {
        self.simulation = simulation
        startedAt = simulation.now
        conversations = ConversationLog(next: next, now: { simulation.now })
        meter = LoginMeter(next: conversations)
    }

    /// Begins to report on a process.
    func begin(_ services: ClientServices, _ readings: WorkerReadings) {
        self.services = services
        self.readings = readings
    }

    /// Replaces the upstreams.
    func setUpstreams(_ upstreams: [UpstreamPlan]) { self.upstreams = upstreams }

    /// Breaks the reference cycle with the workers.
    func end() { (services, readings, upstreams) = (nil, nil, []) }

    /// Functions that the admin service calls.
    var sources: AdminService.Sources {
        AdminService.Sources(
            report: { self.report() }, ask: { self.readings?.ask($0) }, metrics: { self.metrics() },
            page: { self.page() },
            unlatch: { name, opened, stored in
                self.simulation.tell("the latches of \(name) are opened over the admin socket")
                self.simulation.account(named: name)?.unlatched()
                self.simulation.process.isUnlatched(name)
                opened(self.services?.gate.unlatch(name, whenStored: stored) ?? OpenedLatches())
            }, dropSessions: { self.drop($0) },
            // No command runs here, so none ends.
            run: { _, _ in })
    }

    private func drop(_ name: String?) -> Int {
        simulation.tell("the sessions of \(name ?? "all") are dropped over the admin socket")
        for server in simulation.servers where name == nil || server.protection.challengeName == name {
            server.protection.account.dropped()
        }
        let dropped = services?.gate.change { gate in
            gate.sessions.drop { name == nil || $0.challenge == name }
        }
        services?.roster.refreshSnapshots()
        return dropped?.count ?? 0
    }

    private func page() -> StatusPage {
        let places = upstreams.map { ($0.name, UpstreamPlace(url: $0.base.description, listeners: [])) }
        return StatusPage(
            report: metrics(), conversations: conversations.conversations, intervals: [],
            places: Dictionary(places) { first, _ in first })
    }

    private func metrics() -> MetricsReport {
        let process = ProcessReading(
            residentBytes: 0, virtualBytes: 0, processorNanoseconds: 0, openDescriptors: nil, mostDescriptors: 0,
            startedAt: startedAt)
        return MetricsReport(
            health: report(), proxy: readings?.latest ?? ProxyReading(), logins: meter.reading, replay: nil,
            process: process, reload: ReloadReading(startedAt: startedAt))
    }

    private func report() -> HealthReport {
        let now = simulation.now
        services?.roster.recover(LoginIndex(upstreams))
        let states = services?.gate.read { $0.sessions.states(now: now) } ?? [:]
        var logins: [HealthReport.Login] = []
        for upstream in upstreams {
            for login in upstream.logins.all where login.refusal == nil {
                let keys = states.keys.filter(login.key.isSibling)
                for key in keys.isEmpty ? [login.key] : keys.sorted(by: { $0.scope < $1.scope }) {
                    logins.append(
                        HealthReport.Login(
                            upstream: upstream.name, challenge: login.name, credential: key.credential,
                            scope: key.scope, asks: login.asks, sessionState: states[key] ?? .cold))
                }
            }
        }
        return HealthReport(
            isAccepting: !simulation.process.isDraining, upstreams: upstreams.map(\.name), logins: logins,
            latches: services?.gate.closed(now: now, replacedIn: services?.credentialVersions) ?? [], figures: [:],
            now: now, version: "1")
    }
}

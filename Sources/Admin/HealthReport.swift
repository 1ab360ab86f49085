// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
package import ChallengeHandling
package import Proxy

/// The state of the daemon: logins, latches, counters. A value, rendered as JSON, without secrets and addresses of upstreams.
package struct HealthReport: Sendable {
    /// The state of one login.
    package struct Login: Sendable {
        /// The name of the upstream.
        package var upstream: String
        /// The name of the challenge.
        package var challenge: String
        /// The name of the credential; empty if there are several.
        package var credential: String
        /// The scope, if there is one.
        package var scope: String
        /// The challenges whose handlers the login uses.
        package var asks: [String]
        /// The state of the session.
        package var sessionState: SessionState

        /// Makes the state of a login.
        package init(
            upstream: String, challenge: String, credential: String = "", scope: String, asks: [String] = [],
            sessionState: SessionState
        ) {
            self.credential = credential
            self.asks = asks
            self.upstream = upstream
            self.challenge = challenge
            self.scope = scope
            self.sessionState = sessionState
        }
    }

    /// True if every worker's loop has turned recently.
    package var isAlive = true
    /// The results of the upstreams' checks, by name.
    package var checks: [String: CheckReading] = [:]
    /// Reasons why tokens of callers are missing, by credential; `nil` if no listener has tokens.
    package var missingCallerTokens: [String: String]?
    /// The state of session sharing; `nil` if it is not configured.
    package var sharing: SharingStatistics?
    /// The upstreams that fail, by name.
    package var outages: [String: UpstreamOutage] = [:]
    /// State that is only in memory; nil if all of it is on disk.
    package var unwritten: UnwrittenState?
    /// Facts about this daemon; nil if they are not needed.
    package var daemon: DaemonFacts?
    /// True if exchanges are accepted: listeners accept, and no drain runs.
    package var isAccepting: Bool
    /// The names of the upstreams, in the order of the configuration.
    package var upstreams: [String]
    /// The state of each login.
    package var logins: [Login]
    /// The closed latches.
    package var latches: [ClosedLatch]
    /// Counters by name.
    package var figures: [String: Int]
    /// The time of the report, in milliseconds since 1970.
    package var now: Int64
    /// The version of the program.
    package var version: String

    /// Makes a report.
    package init(
        isAccepting: Bool, upstreams: [String], logins: [Login], latches: [ClosedLatch], figures: [String: Int],
        now: Int64, version: String
    ) {
        self.isAccepting = isAccepting
        self.upstreams = upstreams
        self.logins = logins
        self.latches = latches
        self.figures = figures
        self.now = now
        self.version = version
    }

    /// True if requests can be served: listeners accept, no login is known to fail, and no upstream fails its check. A login that
    /// no request has needed is not a problem.
    package var isReady: Bool { HealthDocument(.ready, of: self).isWell }

    /// Returns the report as JSON, beginning with `document`; with all details if `isVerbose`.
    package func json(_ document: HealthDocument, isVerbose: Bool) -> JSONValue {
        var object = document.json
        guard isVerbose else { return .object(object) }
        object["upstream_checks"] = .object(checks.mapValues { $0.json })
        object["version"] = .string(version)
        object["figures"] = .object(figures.mapValues { .integer(Int64($0)) })
        let loginsByUpstream = loginsByUpstream
        object["upstreams"] = .object(
            Dictionary(
                upstreams.map { name in (name, .array((loginsByUpstream[name] ?? []).map { $0.json(now: now) })) },
                uniquingKeysWith: { first, _ in first }))
        object["latches"] = .array(latches.map(\.json))
        object["session_store"] = sharing?.json(now: now)
        object["outages"] = .object(outages.mapValues { $0.json(now: now) })
        object["unwritten_state"] = .array((unwritten?.sentences ?? []).map { .string($0) })
        for (name, value) in daemon?.json ?? [:] { object[name] = value }
        return .object(object)
    }
}

extension HealthReport {
    /// The logins of each upstream, by its name.
    var loginsByUpstream: [String: [Login]] { Dictionary(grouping: logins, by: \.upstream) }
}

/// Facts about the running daemon.
package struct DaemonFacts: Sendable {
    /// Process.
    package var process: Int32
    /// Time of the start, in milliseconds since 1970.
    package var startedAt: Int64
    /// Path of the configuration, as given to the daemon.
    package var configuration: String
    /// Addresses of the listeners.
    package var listeners: [String]
    /// The last reload.
    package var reload: ReloadReading

    /// Makes a set of facts.
    package init(
        process: Int32, startedAt: Int64, configuration: String, listeners: [String], reload: ReloadReading
    ) {
        self.process = process
        self.startedAt = startedAt
        self.configuration = configuration
        self.listeners = listeners
        self.reload = reload
    }

    /// Removes details that other users of the machine need not know: the path of the file, and texts from it.
    mutating func removePrivateTexts() {
        configuration = ""
        if reload.refusal != nil { reload.record(refusal: "(shown over the Unix socket)", now: reload.endedAt) }
    }

    fileprivate var json: [String: JSONValue] {
        [
            "process": .integer(Int64(process)), "started_at": .integer(startedAt / 1000),
            "configuration": .string(configuration), "listeners": .array(listeners.map { .string($0) }),
            "reload": [
                "ended_at": .integer(reload.endedAt / 1000), "refusal": reload.refusal.map { .string($0) } ?? .null,
            ],
        ]
    }
}

extension UpstreamOutage {
    fileprivate func json(now: Int64) -> JSONValue {
        [
            "since": .integer(since / 1000), "last": .integer(last / 1000), "failures": .integer(Int64(failures)),
            "partial": .bool(isPartial), "reason": .string(reason),
        ]
    }
}

extension SharingStatistics {
    fileprivate func json(now: Int64) -> JSONValue {
        var object: [String: JSONValue] = [
            "state": isStoreReachable ? "there" : "away",
            "for_seconds": .integer(max(0, now.saturatingSubtract(since)) / 1000),
            "leases": .integer(Int64(clamping: leases)), "taken": .integer(Int64(clamping: taken)),
            "published": .integer(Int64(clamping: published)), "alone": .integer(Int64(clamping: alone)),
            "unusable": .integer(Int64(clamping: unusable)),
        ]
        if !isStoreReachable { object["detail"] = .string(reason) }
        return .object(object)
    }
}

extension CheckReading {
    fileprivate var json: JSONValue {
        var object: [String: JSONValue] = [
            "since": .integer(since / 1000), "asked_at": askedAt.map { .integer($0 / 1000) } ?? .null,
            "took_ms": .integer(Int64(clamping: nanoseconds / 1_000_000)),
            "passed": .integer(Int64(clamping: passed)), "failed": .integer(Int64(clamping: failed)),
        ]
        switch state {
        case .down(let reason): (object["state"], object["detail"]) = ("down", .string(reason))
        case .unknown(let reason): (object["state"], object["detail"]) = ("unknown", .string(reason))
        case .up: object["state"] = "up"
        }
        return .object(object)
    }
}

extension HealthReport.Login {
    fileprivate func json(now: Int64) -> JSONValue {
        var object: [String: JSONValue] = [
            "challenge": .string(challenge), "credential": .string(credential), "scope": .string(scope),
            "asks": .array(asks.map { .string($0) }),
        ]
        switch sessionState {
        case .cold: object["state"] = "cold"
        case .failing: object["state"] = "failing"
        case .held(let held):
            object["state"] = "held"
            object["taken_over"] = .bool(held.isTakenOver)
            if let userAgent = held.boundUserAgent { object["bound_user_agent"] = .string(userAgent) }
            object["generation"] = .integer(Int64(clamping: held.generation))
            object["held_seconds"] = .integer(now.saturatingSubtract(held.establishedAt) / 1000)
            object["established_at"] = .integer(held.establishedAt / 1000)
            object["expires_at"] = held.session.expiresAt.map { .integer($0 / 1000) } ?? .null
            object["renews_in"] = held.renewAt.map { .integer(max(0, $0.saturatingSubtract(now)) / 1000) } ?? .null
            object["renewals"] = .integer(Int64(held.renewals))
            object["expires_in"] =
                held.session.expiresAt.map { .integer(max(0, $0.saturatingSubtract(now)) / 1000) } ?? .null
        case .loggingIn(let waiters, _):
            object["state"] = "logging-in"
            object["waiters"] = .integer(Int64(waiters))
        }
        if let failure = sessionState.failure {
            object["code"] = .string(failure.code.rawValue)
            object["detail"] = .string(failure.detail)
        }
        return .object(object)
    }
}

extension ClosedLatch {
    /// The name of the credential, for people.
    var credential: String { key?.credential ?? "of another node" }

    fileprivate var json: JSONValue {
        [
            "challenge": .string(challenge), "credential": .string(credential),
            "reason": .string(latch.reason.rawValue), "closed_at": .integer(latch.closedAt / 1000),
            "opens_at": latch.opensAt.map { .integer($0 / 1000) } ?? .null,
            "detail": .string("\(refusal.why) \(refusal.remedy)"),
            "source": source.map { .string($0.name) } ?? .null,
        ]
    }
}

/// One check of the daemon's health.
struct HealthCheck: Sendable {
    /// The name by which the check can be excluded: `workers`, `listeners`, an upstream's, or an upstream's and a challenge's
    /// with a slash between them.
    var name: String
    /// The state, in one word.
    var state: String
    /// The problem, if there is one.
    var problem: String?
    /// Other names by which the check can be excluded: those of its upstream and challenges.
    var otherNames: [String] = []
}

/// The answer of `/livez`, `/readyz` and `/healthz`: the result of the checks, with the problems.
package struct HealthDocument: Sendable {
    /// The questions that probes ask.
    package enum Question: String, Sendable, CaseIterable {
        /// Checks if the event loops turn. If not, only a restart helps.
        case alive = "/livez"
        /// Can requests be served?
        case ready = "/readyz"
        /// Both.
        case healthy = "/healthz"
    }

    /// True if no check has a problem, except excluded ones.
    package let isWell: Bool
    private let question: Question
    private let checks: [HealthCheck]
    private let excluded: [HealthCheck]
    private let unknown: [String]

    /// Makes the answer of `report` to a question, without the checks that `names` exclude.
    package init(_ question: Question, of report: HealthReport, excluding names: [String] = []) {
        self.question = question
        let all = report.checks(for: question)
        func isExcluded(_ check: HealthCheck) -> Bool {
            names.contains { $0 == check.name || check.otherNames.contains($0) }
        }
        excluded = all.filter(isExcluded)
        checks = all.filter { !isExcluded($0) }
        unknown = names.filter { name in !all.contains { $0.name == name || $0.otherNames.contains(name) } }
        isWell = checks.allSatisfy { $0.problem == nil }
    }

    /// The problems, in sentences.
    package var reasons: [String] {
        checks.compactMap { check in check.problem.map { "\(check.name): \($0)" } }
    }

    /// The document as JSON: `status`, `reasons`, `checks` with their states, excluded checks, and warnings.
    package var json: [String: JSONValue] {
        var object: [String: JSONValue] = [
            "status": .string((isWell ? "" : "not ") + question.word),
            "reasons": .array(reasons.map { .string($0) }),
            "checks": .object(
                Dictionary(checks.map { ($0.name, .string($0.state)) }, uniquingKeysWith: { first, _ in first })),
        ]
        if !excluded.isEmpty { object["excluded"] = .array(excluded.map { .string($0.name) }) }
        if !unknown.isEmpty {
            let known = (checks + excluded).map(\.name).joined(separator: ", ")
            object["warnings"] = .array(
                unknown.map { .string("exclude=\($0): there is no such check; the checks are \(known)") })
        }
        return object
    }
}

extension HealthDocument.Question {
    fileprivate var word: String {
        switch self {
        case .alive: "alive"
        case .healthy: "healthy"
        case .ready: "ready"
        }
    }
}

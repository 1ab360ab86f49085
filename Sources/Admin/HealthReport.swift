// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
package import ChallengeHandling

/// How the daemon stands: each upstream's logins, the latches, the counters. A value, rendered as JSON; holds no
/// secret and no address of an upstream.
package struct HealthReport: Sendable {
    /// How one login stands.
    package struct Login: Sendable {
        /// The upstream's name.
        package var upstream: String
        /// The challenge's name.
        package var challenge: String
        /// The credential's name; empty where several take part.
        package var credential: String
        /// The scope, where there is one.
        package var scope: String
        /// The challenges whose handlers it asks.
        package var asks: [String]
        /// How it stands.
        package var standing: SessionStanding

        /// A login.
        package init(
            upstream: String, challenge: String, credential: String = "", scope: String, asks: [String] = [],
            standing: SessionStanding
        ) {
            self.credential = credential
            self.asks = asks
            self.upstream = upstream
            self.challenge = challenge
            self.scope = scope
            self.standing = standing
        }
    }

    /// Whether every worker's loop has turned of late.
    package var isAlive = true
    /// What is known of the upstreams that are asked from time to time.
    package var checks: [String: CheckReading] = [:]
    /// How the sharing of sessions does; `nil` where this host is alone.
    package var fleet: FleetFigures?
    /// Whether exchanges are taken: listeners accept and nothing drains.
    package var isAccepting: Bool
    /// The upstreams by name, in the order of the configuration.
    package var upstreams: [String]
    /// The logins.
    package var logins: [Login]
    /// The latches.
    package var latches: [ClosedLatch]
    /// Counters by name.
    package var figures: [String: Int]
    /// The time of the report, in milliseconds since 1970.
    package var now: Int64
    /// The program's version.
    package var version: String

    /// A report.
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

    /// Whether requests can be expected to be served: listeners accept, no login is known to fail, and no upstream that is
    /// asked has failed to answer. A login that nobody has asked for yet is not held against it.
    package var isReady: Bool { HealthDocument(.ready, of: self).isWell }

    /// The report as JSON, beginning with what `document` says; `isVerbose`: with all that is known.
    package func json(_ document: HealthDocument, isVerbose: Bool) -> JSONValue {
        var object = document.json
        guard isVerbose else { return .object(object) }
        object["upstream_checks"] = .object(checks.mapValues { $0.json })
        object["version"] = .string(version)
        object["figures"] = .object(figures.mapValues { .integer(Int64($0)) })
        object["upstreams"] = .object(
            Dictionary(
                upstreams.map { name in
                    (name, .array(logins.filter { $0.upstream == name }.map { $0.json(now: now) }))
                }, uniquingKeysWith: { first, _ in first }))
        object["latches"] = .array(latches.map(\.json))
        object["session_engine"] = fleet?.json(now: now)
        return .object(object)
    }

}

extension FleetFigures {
    fileprivate func json(now: Int64) -> JSONValue {
        var object: [String: JSONValue] = [
            "state": isEngineThere ? "there" : "away",
            "for_seconds": .integer(max(0, now.saturatingSubtract(since)) / 1000),
            "leases": .integer(Int64(clamping: leases)), "taken": .integer(Int64(clamping: taken)),
            "published": .integer(Int64(clamping: published)), "alone": .integer(Int64(clamping: alone)),
            "unusable": .integer(Int64(clamping: unusable)),
        ]
        if !isEngineThere { object["detail"] = .string(reason) }
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
        switch standing {
        case .cold: object["state"] = "cold"
        case .failing(let failure):
            object["state"] = "failing"
            object["code"] = .string(failure.code.rawValue)
            object["detail"] = .string(failure.detail)
        case .held(let held):
            object["state"] = "held"
            object["taken_over"] = .bool(held.isTakenOver)
            object["generation"] = .integer(Int64(clamping: held.generation))
            object["held_seconds"] = .integer(now.saturatingSubtract(held.wonAt) / 1000)
            object["won_at"] = .integer(held.wonAt / 1000)
            object["expires_at"] = held.session.expiresAt.map { .integer($0 / 1000) } ?? .null
            object["renews_in"] = held.renewAt.map { .integer(max(0, $0.saturatingSubtract(now)) / 1000) } ?? .null
            object["renewals"] = .integer(Int64(held.renewals))
            object["expires_in"] =
                held.session.expiresAt.map { .integer(max(0, $0.saturatingSubtract(now)) / 1000) } ?? .null
        case .winning(let waiters):
            object["state"] = "winning"
            object["waiters"] = .integer(Int64(waiters))
        }
        return .object(object)
    }
}

extension ClosedLatch {
    /// The credential's name, for people.
    var credential: String { key?.credential ?? "of the fleet" }

    fileprivate var json: JSONValue {
        [
            "challenge": .string(challenge), "credential": .string(credential),
            "reason": .string(latch.reason.rawValue), "closed_at": .integer(latch.closedAt / 1000),
            "opens_at": latch.opensAt.map { .integer($0 / 1000) } ?? .null,
            "detail": .string("\(refusal.why) \(refusal.remedy)"),
        ]
    }
}

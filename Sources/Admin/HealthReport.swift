// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
        /// The scope, where there is one.
        package var scope: String
        /// The challenges whose handlers it asks.
        package var asks: [String]
        /// How it stands.
        package var standing: SessionStanding

        /// A login.
        package init(
            upstream: String, challenge: String, scope: String, asks: [String] = [], standing: SessionStanding
        ) {
            self.asks = asks
            self.upstream = upstream
            self.challenge = challenge
            self.scope = scope
            self.standing = standing
        }
    }

    /// A latch that is closed.
    package struct ClosedLatch: Sendable {
        /// The challenge's name.
        package var challenge: String
        /// The credential's name.
        package var credential: String
        /// What happened.
        package var latch: Latch

        /// A latch.
        package init(challenge: String, credential: String, latch: Latch) {
            self.challenge = challenge
            self.credential = credential
            self.latch = latch
        }
    }

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

    /// Whether requests can be expected to be served: listeners accept, and no login is known to fail. A login that
    /// nobody has asked for yet is not held against it.
    package var isReady: Bool {
        isAccepting
            && logins.allSatisfy {
                if case .failing = $0.standing { false } else { true }
            }
    }

    /// The report as JSON; the short one names what is not well.
    package func document(isVerbose: Bool) -> JSONValue {
        var object: [String: JSONValue] = [
            "status": isReady ? "ready" : "not ready",
            "reasons": .array(reasons.map { .string($0) }),
        ]
        guard isVerbose else { return .object(object) }
        object["version"] = .string(version)
        object["figures"] = .object(figures.mapValues { .integer(Int64($0)) })
        object["upstreams"] = .object(
            Dictionary(
                upstreams.map { name in
                    (name, .array(logins.filter { $0.upstream == name }.map { $0.json(now: now) }))
                }, uniquingKeysWith: { first, _ in first }))
        object["latches"] = .array(latches.map(\.json))
        return .object(object)
    }

    private var reasons: [String] {
        var reasons = isAccepting ? [] : ["the daemon is shutting down"]
        for login in logins {
            if case .failing(let failure) = login.standing {
                reasons.append("\(login.upstream)/\(login.challenge): \(failure.code.rawValue): \(failure.detail)")
            }
        }
        return reasons
    }
}

extension HealthReport.Login {
    fileprivate func json(now: Int64) -> JSONValue {
        var object: [String: JSONValue] = [
            "challenge": .string(challenge), "scope": .string(scope), "asks": .array(asks.map { .string($0) }),
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
            object["held_seconds"] = .integer((now - held.wonAt) / 1000)
            object["expires_in"] = held.session.expiresAt.map { .integer(max(0, $0 - now) / 1000) } ?? .null
        case .winning(let waiters):
            object["state"] = "winning"
            object["waiters"] = .integer(Int64(waiters))
        }
        return .object(object)
    }
}

extension HealthReport.ClosedLatch {
    fileprivate var json: JSONValue {
        [
            "challenge": .string(challenge), "credential": .string(credential),
            "reason": .string(latch.reason.rawValue), "closed_at": .integer(latch.closedAt / 1000),
            "opens_at": latch.opensAt.map { .integer($0 / 1000) } ?? .null,
        ]
    }
}

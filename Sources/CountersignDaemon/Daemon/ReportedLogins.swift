// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import ChallengeHandling

/// The logins that reports show, in the order of the configuration. A value, made once for a configuration.
struct ReportedLogins: Sendable {
    /// One login of one upstream. A login at several locations, or for several users, is reported once.
    struct Entry: Sendable {
        let upstream: String
        let login: Authenticator
    }

    private struct Name: Hashable {
        let upstream: String
        let key: SessionKey
    }

    /// All of them.
    let all: [Entry]
    /// The names of the upstreams.
    let upstreams: [String]
    private let indicesByKey: [SessionKey: [Int]]
    private let indicesByLatch: [LatchName: [Int]]

    /// Collects the logins of these upstreams.
    init(_ plans: [UpstreamPlan] = []) {
        var (all, upstreams): ([Entry], [String]) = ([], [])
        var (names, known): (Set<Name>, Set<String>) = ([], [])
        var (byKey, byLatch): ([SessionKey: [Int]], [LatchName: [Int]]) = ([:], [:])
        for plan in plans {
            if known.insert(plan.name).inserted { upstreams.append(plan.name) }
            for login in plan.logins.all
            where login.refusal == nil && names.insert(Name(upstream: plan.name, key: login.key)).inserted {
                byKey[login.key.withoutScope, default: []].append(all.count)
                for name in LatchName.all(of: login) { byLatch[name, default: []].append(all.count) }
                all.append(Entry(upstream: plan.name, login: login))
            }
        }
        (self.all, self.upstreams) = (all, upstreams)
        (indicesByKey, indicesByLatch) = (byKey, byLatch)
    }

    /// Returns the logins with these session keys, in any scope, and those that these latches may stop.
    func concerned(by keys: [SessionKey], _ latches: [ClosedLatch]) -> [Entry] {
        let indices = Set(
            keys.flatMap { indicesByKey[$0.withoutScope] ?? [] }
                + latches.flatMap { indicesByLatch[LatchName($0)] ?? [] })
        return indices.sorted().map { all[$0] }
    }
}

/// The name by which a latch and the logins that it may stop find each other.
struct LatchName: Hashable {
    private let challenge: String
    /// The credential; nil for a latch that only other nodes have.
    private let credential: String?

    init(_ latch: ClosedLatch) {
        (challenge, credential) = (latch.challenge, latch.key?.credential)
    }

    private init(_ challenge: String, _ credential: String?) {
        (self.challenge, self.credential) = (challenge, credential)
    }

    /// Returns the names of all latches that may stop a login.
    static func all(of login: Authenticator) -> Set<LatchName> {
        var names: Set<LatchName> = []
        for challenge in [login.name] + login.asks {
            names.insert(LatchName(challenge, nil))
            for credential in login.credentials { names.insert(LatchName(challenge, credential)) }
        }
        return names
    }
}

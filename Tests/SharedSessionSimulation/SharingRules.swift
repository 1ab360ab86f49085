// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SessionStoreModel
import SharedSessions

/// Rules that hold in every run, under any faults.
struct SharingRules {
    var seed: UInt64 = 0
    private(set) var broken: String?
    /// Number of repeated rejected passwords, by the reason.
    private(set) var repeats: [Why: Int] = [:]
    /// The logins under each lease.
    private var logins: [UInt64: Int] = [:]
    private var contents: [UInt64: [UInt8]] = [:]
    private var lastPublished: UInt64 = 0
    private var rejections: [Int: Rejection] = [:]
    /// Passwords whose rejection a node knows from the server itself, by node.
    private var told: [Int: Set<Int>] = [:]

    /// Reason for sending a password again that the server had rejected.
    enum Why: String, CaseIterable {
        /// Under a lease, and the session store knew of it: never.
        case careless
        /// The session store was away, and the node logged in alone.
        case alone
        /// The node that was rejected died before it could tell.
        case died
        /// The session store has lost its data since.
        case lost
        /// The rejection was still on its way to the session store, or two logins ran at once because a lease could not
        /// be extended.
        case unreported
    }

    private struct Rejection {
        var node: Int
        var life: Int
        var hasDied = false
        /// True if the session store has had it.
        var isReported = false
        var isLost = false
    }

    /// The time in ms within which every caller gets a session or a failure: longer than a few slow logins and lost
    /// leases one after the other.
    static let longestWait: Int64 = 60_000

    mutating func fail(_ what: String) {
        if broken == nil { broken = "seed \(seed): \(what)" }
    }

    /// A login begins.
    mutating func begins(_ node: SimulatedNode, under generation: UInt64?, now: Int64) {
        guard let generation else {
            // A session that still serves is left alone while the session store is away.
            if let held = node.table.held(NodeSimulation.key), held.renewAt.map({ $0 > node.wall }) ?? true {
                fail("node \(node.number) logs in alone though it has a session")
            }
            return
        }
        logins[generation, default: 0] += 1
        if logins[generation] != 1 {
            fail("\(now): a second login under the lease \(generation), by node \(node.number)")
        }
    }

    /// A node has a session that is of that generation as far as it knows.
    mutating func has(_ session: [UInt8], of generation: UInt64) {
        if contents[generation, default: session] != session { fail("two sessions of generation \(generation)") }
        contents[generation] = session
    }

    /// After each change at the session store.
    mutating func check(_ sessionStore: SessionStoreModel) {
        guard let entry = sessionStore.entries[SimulatedNode.name] else { return }
        if let session = entry.session {
            has(session.bytes, of: session.generation)
            if session.generation < lastPublished { fail("generation \(session.generation) after \(lastPublished)") }
            lastPublished = session.generation
        }
        for (password, rejection) in rejections
        where !rejection.isReported && sessionStore.latches["\(password)"] != nil {
            rejections[password]?.isReported = true
        }
    }

    mutating func dataWereLost() {
        // A session from before may be published by its node once more.
        lastPublished = 0
        for password in rejections.keys { rejections[password]?.isLost = true }
    }

    /// The server has rejected a password. `wasKnown`: the session store knew it to be rejected when this login began.
    mutating func rejected(_ password: Int, from node: SimulatedNode, life: Int, isAlone: Bool, wasKnown: Bool) {
        guard let earlier = rejections[password] else {
            rejections[password] = Rejection(node: node.number, life: life, hasDied: life != node.life)
            return
        }
        let why: Why =
            if isAlone { .alone } else if wasKnown { .careless } else if earlier.hasDied {
                .died
            } else if earlier.isLost { .lost } else if !earlier.isReported { .unreported }
            // It has become known while this login was under way.
            else { .unreported }
        repeats[why, default: 0] += 1
        if why == .careless {
            fail("node \(node.number) sends the password \(password), which the simulation knows to be rejected")
        }
    }

    /// A node learns from the server that a password is rejected; never twice.
    mutating func learns(_ node: SimulatedNode, _ password: Int) {
        if !told[node.number, default: []].insert(password).inserted {
            fail("node \(node.number) has sent the password \(password) again")
        }
    }

    mutating func died(_ node: SimulatedNode) {
        for (password, rejection) in rejections where rejection.node == node.number && !rejection.isReported {
            rejections[password]?.hasDied = true
        }
    }

    mutating func checkWaiting(_ node: SimulatedNode, now: Int64) {
        if let since = node.wantedSince, now - since > Self.longestWait {
            fail("node \(node.number) has wanted a session since \(since), and it is \(now)")
        }
        if let oldest = node.waiting.values.min(), now - oldest > Self.longestWait {
            fail("a caller of node \(node.number) has waited since \(oldest), and it is \(now)")
        }
    }

    /// After a time without faults.
    mutating func checkEnd(_ node: SimulatedNode, wall: Int64, server: SimulatedServer, now: Int64) {
        if !node.waiting.isEmpty { fail("callers of node \(node.number) wait at the end") }
        if node.machine.hasPendingReports { fail("node \(node.number) has not told all at the end") }
        guard let held = node.table.held(NodeSimulation.key), let session = held.number else {
            return fail("node \(node.number) has no session at the end")
        }
        if !held.isExpired(at: wall), !server.isValid(session, now: now) {
            fail("node \(node.number) has a session at the end that the server does not know")
        }
    }
}

/// The costs of a run.
struct SharingReport {
    /// Callers that were answered, and callers that received a login error.
    var served = 0, failed = 0
    /// Waiting times of callers that got a session, in milliseconds.
    var waited: [Int64] = []
    /// The longest time from wanting a session to having it, or a failure.
    var longestWant: Int64 = 0
    /// Logins under leases, and alone.
    private(set) var leased = 0, alone = 0
    /// Sessions that came too late, as a later lease had been granted.
    var stale = 0
    /// Requests to the session store, in all and by the second.
    private(set) var commands = 0
    private(set) var bySecond: [Int64: Int] = [:]
    var server = SimulatedServer()

    mutating func begins(under generation: UInt64?) {
        if generation == nil { alone += 1 } else { leased += 1 }
    }

    mutating func count(at time: Int64) {
        commands += 1
        bySecond[time / 1_000, default: 0] += 1
    }

    var mostPerSecond: Int { bySecond.values.max() ?? 0 }

    /// Returns the time within which that share of the callers had their session, in milliseconds.
    func percentile(_ share: Double) -> Int64 {
        let sorted = waited.sorted()
        guard !sorted.isEmpty else { return 0 }
        return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EngineModel

/// What must hold in every run, whatever goes wrong.
struct FleetRules {
    var seed: UInt64 = 0
    private(set) var broken: String?
    /// How often a rejected password was sent once more, by why the fleet did not know.
    private(set) var repeats: [Why: Int] = [:]
    /// The logins under each lease.
    private var logins: [UInt64: Int] = [:]
    private var contents: [UInt64: [UInt8]] = [:]
    private var lastPublished: UInt64 = 0
    private var rejections: [Int: Rejection] = [:]
    /// Which hosts know from the server itself that a password is rejected.
    private var told: [Int: Set<Int>] = [:]

    /// Why a password that the server had rejected already was sent again.
    enum Why: String, CaseIterable {
        /// Under a lease, and the engine knew of it: never.
        case careless
        /// The engine was away, and the host logged in alone.
        case alone
        /// The host that was rejected died before it could tell.
        case died
        /// The engine has lost its data since.
        case lost
        /// It was on its way to the engine still, or the two were under way at once, because a lease could not be extended.
        case untold
    }

    private struct Rejection {
        var host: Int
        var life: Int
        var hasDied = false
        /// Whether the engine has known of it.
        var isTold = false
        var isLost = false
    }

    /// Everybody who wants a session gets one, or a failure, within this time: longer than a few slow logins and lost leases one
    /// after the other.
    static let longestWait: Int64 = 60_000

    mutating func fail(_ what: String) {
        if broken == nil { broken = "seed \(seed): \(what)" }
    }

    /// A login begins.
    mutating func begins(_ host: SimulatedHost, under generation: UInt64?, now: Int64) {
        guard let generation else {
            // What still serves is left alone while the engine is away.
            if let held = host.table.held(SimulatedFleet.key), held.renewAt.map({ $0 > host.wall }) ?? true {
                fail("host \(host.number) logs in alone though it has a session")
            }
            return
        }
        logins[generation, default: 0] += 1
        if logins[generation] != 1 {
            fail("\(now): a second login under the lease \(generation), by host \(host.number)")
        }
    }

    /// A host has a session that is of that generation as far as it knows.
    mutating func has(_ session: [UInt8], of generation: UInt64) {
        if contents[generation, default: session] != session { fail("two sessions of generation \(generation)") }
        contents[generation] = session
    }

    /// After each change at the engine.
    mutating func check(_ engine: EngineModel) {
        guard let entry = engine.entries[SimulatedHost.name] else { return }
        if let session = entry.session {
            has(session.bytes, of: session.generation)
            if session.generation < lastPublished { fail("generation \(session.generation) after \(lastPublished)") }
            lastPublished = session.generation
        }
        for (password, rejection) in rejections where !rejection.isTold && engine.latches["\(password)"] != nil {
            rejections[password]?.isTold = true
        }
    }

    mutating func dataWereLost() {
        // A session from before may be published by its host once more.
        lastPublished = 0
        for password in rejections.keys { rejections[password]?.isLost = true }
    }

    /// The server has rejected a password. `wasKnown`: the engine knew it to be rejected when this login began.
    mutating func rejected(_ password: Int, from host: SimulatedHost, life: Int, isAlone: Bool, wasKnown: Bool) {
        guard let earlier = rejections[password] else {
            rejections[password] = Rejection(host: host.number, life: life, hasDied: life != host.life)
            return
        }
        let why: Why =
            if isAlone { .alone } else if wasKnown { .careless } else if earlier.hasDied {
                .died
            } else if earlier.isLost { .lost } else if !earlier.isTold { .untold }
            // It has become known while this login was under way.
            else { .untold }
        repeats[why, default: 0] += 1
        if why == .careless {
            fail("host \(host.number) sends the password \(password), which the fleet knows to be rejected")
        }
    }

    /// A host learns from the server that a password is rejected; never twice.
    mutating func learns(_ host: SimulatedHost, _ password: Int) {
        if !told[host.number, default: []].insert(password).inserted {
            fail("host \(host.number) has sent the password \(password) again")
        }
    }

    mutating func died(_ host: SimulatedHost) {
        for (password, rejection) in rejections where rejection.host == host.number && !rejection.isTold {
            rejections[password]?.hasDied = true
        }
    }

    mutating func checkWaiting(_ host: SimulatedHost, now: Int64) {
        if let since = host.wantedSince, now - since > Self.longestWait {
            fail("host \(host.number) has wanted a session since \(since), and it is \(now)")
        }
        if let oldest = host.waiting.values.min(), now - oldest > Self.longestWait {
            fail("a caller of host \(host.number) has waited since \(oldest), and it is \(now)")
        }
    }

    /// After a time without faults.
    mutating func checkEnd(_ host: SimulatedHost, wall: Int64, server: SimulatedServer, now: Int64) {
        if !host.waiting.isEmpty { fail("callers of host \(host.number) wait at the end") }
        if host.machine.hasUntold { fail("host \(host.number) has not told all at the end") }
        guard let held = host.table.held(SimulatedFleet.key), let session = held.number else {
            return fail("host \(host.number) has no session at the end")
        }
        if !held.isExpired(at: wall), !server.isValid(session, now: now) {
            fail("host \(host.number) has a session at the end that the server does not know")
        }
    }
}

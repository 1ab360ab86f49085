// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

@testable import ChallengeClient

/// The logins of one challenge at one node.
struct WatchedLogin: Hashable {
    let name: String
    let node: Int
}

/// The course of logins over time: the judge of rule 1 for their requests, of deadlines, and of latches that are given as a reason.
final class LoginWatch {
    private struct Challenge {
        /// The login that runs, by its observer.
        var began: (at: Int64, step: Int)?
        /// The beginning of the last login, in ms since 1970.
        var lastBegin = Int64.min / 2
        /// The end of a login whose session its server may have ended before, in ms since 1970.
        var lastStillbirth = Int64.min / 2
        /// The beginnings of the requests of a login that are under way.
        var requests: [ObjectIdentifier: Int64] = [:]
        /// The values that were looked up lately.
        var values: [(value: String, step: Int)] = []
        /// The time of the last failed login, for any reason, in ms since 1970.
        var lastFailure = Int64.min / 2
        /// The beginning of the last login that ended at a latch, in ms since 1970, and its end.
        var lastLatched = (began: Int64.min / 2, ended: Int64.min / 2)
        /// The time of the last login that took too long.
        var lastTimeout = Int64.min / 2
        /// The time of the last login that worked.
        var lastSuccess = Int64.min / 2
        /// The last time at which the session was examined, or its state reported.
        var lastLook = Int64.min / 2
    }

    private static let mostValues = 16
    private static let recentLookups = 4
    /// The time within which a deadline is noticed: the clock moves in pieces.
    private static let slack: Int64 = 500

    private unowned let simulation: Simulation
    private var challenges: [WatchedLogin: Challenge] = [:]
    /// The challenges whose sessions are a former process's, and that no login has followed.
    private var adoptions: Set<String> = []

    init(_ simulation: Simulation) { self.simulation = simulation }

    // MARK: Logins

    /// Notes that a login begins.
    func began(_ login: WatchedLogin) {
        challenges[login, default: Challenge()].began = (simulation.now, simulation.steps)
        challenges[login]?.lastBegin = simulation.now
        adoptions.remove(login.name)
    }

    /// Judges the end of a login, or the refusal of a session outside of one. `isAlive`: its process writes what it learns.
    func ended(_ login: WatchedLogin, _ result: Result<Session, LoginFailure>, isAlive: Bool) {
        let challenge = challenges[login, default: Challenge()]
        challenges[login, default: Challenge()].began = nil
        // Its requests on their way are not awaited any more.
        challenges[login, default: Challenge()].requests = [:]
        guard case .failure(let failure) = result else {
            adoptions.remove(login.name)
            let isDead = simulation.account(named: login.name).map { $0.lastEnd >= challenge.lastBegin } ?? false
            // A login at which nothing was asked ends the pauses as well.
            if let account = simulation.account(named: login.name), !account.ridesOnRequests {
                simulation.attempts.pauseEnds(of: login.name)
            }
            if isDead { challenges[login, default: Challenge()].lastStillbirth = simulation.now }
            challenges[login, default: Challenge()].lastSuccess = simulation.now
            return
        }
        challenges[login, default: Challenge()].lastFailure = simulation.now
        switch failure.code {
        case .timedOut:
            challenges[login, default: Challenge()].lastTimeout = simulation.now
            // Its last request may still be under way.
            simulation.account(named: login.name)?.excuse()
        case .latched:
            let step = challenge.began?.step ?? 0
            challenges[login]?.lastLatched = (challenge.lastBegin, simulation.now)
            let isCause = challenge.values.contains {
                $0.step >= step && wasClosed($0.value, of: login.name, since: step)
            }
            // A latch that closes while the disk is busy is noted later.
            if !isCause, simulation.disks.allSatisfy({ $0.pending == 0 }) {
                simulation.violated("rule 3: no value of \(login.name) is latched, and a login ends at a latch")
            }
        case .rejected where isAlive && !simulation.weather.hasDiskFaults:
            let isWritten = challenge.values.contains { wasWritten($0.value, of: login.name) }
            if !isWritten {
                simulation.violated("rule 3: a rejection of \(login.name) is told before its latch is on disk")
            }
        default: break
        }
    }

    /// Notes that the value of a credential is looked up.
    func lookedUp(_ name: String, at node: Int) {
        for server in simulation.servers where server.protection.account.name == name {
            guard let value = server.protection.account.stored else { continue }
            lookedUp(value, of: WatchedLogin(name: server.protection.challengeName, node: node))
        }
    }

    private func lookedUp(_ value: String, of login: WatchedLogin) {
        var challenge = challenges[login, default: Challenge()]
        challenge.values.append((value, simulation.steps))
        if challenge.values.count > Self.mostValues { challenge.values.removeFirst() }
        challenges[login] = challenge
    }

    /// Returns the values that were looked up last.
    func recentValues(of name: String) -> Set<String> {
        Set(all(name).flatMap { $0.values.suffix(Self.recentLookups).map(\.value) })
    }

    /// Returns the time when the last login of the challenge began, in ms since 1970.
    func lastBegin(of name: String) -> Int64 { all(name).map(\.lastBegin).max() ?? .min }

    /// Records, when a latch closes, whether its server has forgotten a session during the login: to the daemon that
    /// looks like a password that was never right. Returns true if the server has.
    func checkForgotten(_ challenge: String) -> Bool {
        guard let protection = simulation.servers.first(where: { $0.protection.challengeName == challenge })?.protection
        else { return false }
        let (account, begin) = (protection.account, lastBegin(of: challenge))
        let isForgotten =
            !protection.isScheme && begin > 0 && account.lastEnd >= begin || simulation.now - account.lastEnd <= 5_000
        if isForgotten { account.isMistaken = true }
        return isForgotten
    }

    /// Returns the beginning of the last login that ended at a latch, at that time or later; `nil` if there is none.
    func beginOfLatched(_ name: String, since time: Int64) -> Int64? {
        all(name).filter { $0.lastLatched.ended >= time }.map(\.lastLatched.began).min()
    }

    /// Returns true if a login of the challenge runs.
    func isRunning(_ name: String) -> Bool { all(name).contains { $0.began != nil } }

    /// Returns true if a login, at that time or later, brought a session that its server may have ended already.
    func wasInVain(_ name: String, since time: Int64) -> Bool { all(name).contains { $0.lastStillbirth >= time } }

    /// Returns true if a login of the challenge failed at that time or later.
    func hasFailed(_ name: String, since time: Int64) -> Bool {
        allOfAccount(name).contains { $0.lastFailure >= time }
    }

    /// Returns true if a login of the challenge took too long at that time or later.
    func wasLate(_ name: String, since time: Int64) -> Bool {
        allOfAccount(name).contains { $0.lastTimeout >= time }
    }

    /// Returns true if a login of the challenge worked at that time or later.
    func wasEstablished(_ name: String, since time: Int64) -> Bool { all(name).contains { $0.lastSuccess >= time } }

    /// Returns true if a session of the challenge was examined at that time or later.
    func hasLooked(_ name: String, since time: Int64) -> Bool { all(name).contains { $0.lastLook >= time } }

    /// Forgets the logins of a process that has ended.
    func processEnded() {
        adoptions = []
        for login in challenges.keys {
            challenges[login]?.began = nil
            challenges[login]?.requests = [:]
        }
    }

    /// Notes that a former process's session is taken over.
    func adopted(_ name: String) { adoptions.insert(name) }

    /// Returns true if the session of a challenge is a former process's.
    func isAdopted(_ name: String) -> Bool { adoptions.contains(name) }

    private func all(_ name: String) -> [Challenge] {
        simulation.disks.indices.compactMap { challenges[WatchedLogin(name: name, node: $0)] }
    }

    private func allOfAccount(_ name: String) -> [Challenge] { challengesBeside(name).flatMap { all($0) } }

    /// Returns the challenges that send the same credential to the same server.
    private func challengesBeside(_ name: String) -> [String] {
        simulation.account(named: name).map { simulation.challenges(of: $0) } ?? [name]
    }

    private func wasClosed(_ value: String, of name: String, since step: Int) -> Bool {
        let digest = digest(value, of: name)
        // With several nodes one may not know yet what another has opened, and a slow disk reports late.
        let since = simulation.disks.count > 1 || simulation.weather.hasDiskFaults ? 0 : step
        let names = challengesBeside(name)
        return simulation.disks.contains { disk in names.contains { disk.wasClosed($0, digest, since: since) } }
    }

    private func wasWritten(_ value: String, of name: String) -> Bool {
        let digest = digest(value, of: name)
        let names = challengesBeside(name)
        return simulation.disks.contains { disk in names.contains { disk.wasWritten($0, digest) } }
    }

    private func digest(_ value: String, of name: String) -> [UInt8] {
        guard let server = simulation.servers.first(where: { $0.protection.challengeName == name }) else { return [] }
        return simulation.disks[0].digest(
            of: simulation.credential(named: server.protection.account.name, value, of: server))
    }

    // MARK: Requests of logins

    /// Judges the beginning of a request of a login, or of the confirmation of a session.
    func requestBegan(_ request: SimulatedSideRequest, of login: WatchedLogin, isPost: Bool) {
        guard simulation.protection(ofLogin: login.name)?.hasOneSession == true else { return }
        var challenge = challenges[login, default: Challenge()]
        let (now, limit) = (simulation.now, simulation.setting.loginLimit)
        if let first = challenge.requests.values.min(), now - first < limit {
            simulation.violated("rule 1: two requests of logins of \(login.name) are under way at once")
        }
        if let (began, _) = challenge.began {
            if now - began > limit + Self.slack {
                simulation.violated("a login of \(login.name) goes on \(now - began - limit) ms behind its deadline")
            }
        } else if isPost {
            simulation.violated("a login of \(login.name) sends something behind its end")
        }
        if challenge.began == nil { challenge.lastLook = now }
        challenge.requests[ObjectIdentifier(request)] = now
        challenges[login] = challenge
    }

    /// Notes the end of a request of a login.
    func requestEnded(_ request: SimulatedSideRequest, of login: WatchedLogin) {
        guard challenges[login]?.requests.removeValue(forKey: ObjectIdentifier(request)) != nil else { return }
        if challenges[login]?.began == nil { challenges[login]?.lastLook = simulation.now }
    }
}

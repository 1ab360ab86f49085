// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import SessionStoreModel
import SharedSessions

// The login of a simulated node: half of the way to the server, which judges, and half of it back.
extension SimulatedNode {
    func logIn(_ generation: UInt64?) {
        simulation.rules.begins(self, under: generation, now: simulation.now)
        simulation.report.begins(under: generation)
        let password = knownPassword
        guard !latched.contains(password) else {
            let told = failure(.latched)
            return simulation.after(1) { [unowned self, life] in
                guard self.life == life else { return }
                end(
                    .failure(told),
                    .loginFailed(Self.rejected, pause: .seconds(1), longestPause: .seconds(30), latches: []))
            }
        }
        let known = simulation.sessionStore.model.latches["\(password)"] != nil
        let half =
            simulation.isBad(simulation.weather.slowLogins)
            ? simulation.pick(0...simulation.weather.longestLogin / 2) : simulation.pick(25...400)
        let isUnknown = simulation.isBad(simulation.weather.unknown)
        simulation.after(half) { [unowned self, life] in
            let answer = simulation.server.logIn(password, now: simulation.now, life: simulation.weather.life)
            if case .rejected = answer {
                simulation.rules.rejected(password, from: self, life: life, isAlone: generation == nil, wasKnown: known)
            }
            simulation.after(half) { [unowned self] in
                guard self.life == life else { return }
                over(answer, password, isUnknown: isUnknown)
            }
        }
    }

    private func over(_ answer: SimulatedServer.Answer, _ password: Int, isUnknown: Bool) {
        if isUnknown {
            return end(
                .failure(failure(.failed)),
                .loginFailed(Self.unknown, pause: .seconds(1), longestPause: .seconds(20), latches: []))
        }
        switch answer {
        case .rejected:
            close(password)
            simulation.rules.learns(self, password)
            let isAlone = !isConnected
            end(
                .failure(failure(.rejected)),
                .loginFailed(
                    Self.rejected, pause: .seconds(1), longestPause: .seconds(20), latches: [Self.latch(password)]))
            if !isAlone { shareLatches() }
        case .session(let number):
            let ends = wall + simulation.weather.life
            end(
                .success(session(number, ends: ends)),
                .loginSucceeded(session: sealed(number, ends: ends), lifetime: .milliseconds(simulation.weather.life)))
        }
    }

    private func end(_ result: Result<Session, LoginFailure>, _ event: LeaseMachine.Event) {
        self.result = result
        if case .loginSucceeded(let session, _) = event { sealed = session }
        on(event)
    }

    func failure(_ code: LoginFailure.Code, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(code, challenge: NodeSimulation.key.challenge, detail: "", retryAt: retryAt)
    }

    private func session(_ number: Int, ends: Int64) -> Session {
        Session(fields: [InjectedField(name: .authorization, value: Secret("\(number)"))], expiresAt: ends)
    }

    private func sealed(_ number: Int, ends: Int64) -> [UInt8] { Array("\(number) \(ends)".utf8) }

    /// Returns the session that another node established; `nil` if that session has ended by this node's clock.
    func opened(_ sealed: [UInt8]) -> Session? {
        let parts = String(decoding: sealed, as: UTF8.self).split(separator: " ")
        guard parts.count == 2, let number = Int(parts[0]), let ends = Int64(parts[1]), ends > wall else { return nil }
        return session(number, ends: ends)
    }
}

extension HeldSession {
    var number: Int? { session.number }
}

extension Session {
    /// The number under which the server knows it.
    var number: Int? { fields.first.flatMap { Int($0.value.revealText()) } }
}

/// The server that the simulation logs in to: a password, and the sessions that it has given out.
struct SimulatedServer {
    enum Answer {
        case rejected
        case session(Int)
    }

    private(set) var password = 1
    /// The logins that it was asked for, refused ones included.
    private(set) var logins = 0
    private(set) var lastSession = 0
    /// Sessions up to this one have ended with a restart.
    private var over = 0
    private var ends: [Int: Int64] = [:]
    private var lastPassword = 1

    mutating func logIn(_ given: Int, now: Int64, life: Int64) -> Answer {
        logins += 1
        guard given == password else { return .rejected }
        lastSession += 1
        ends[lastSession] = now + life
        return .session(lastSession)
    }

    func isValid(_ session: Int, now: Int64) -> Bool { session > over && (ends[session] ?? 0) > now }

    mutating func restart() { over = lastSession }

    /// Wrong ones are a thousand more, so that none comes twice.
    mutating func changePassword() -> Int {
        lastPassword += 1
        password = lastPassword
        return password
    }
}

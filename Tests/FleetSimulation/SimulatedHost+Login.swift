// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EngineModel
import HTTPTypes
import Secrets

// The login of a simulated host: half of the way to the server, which judges, and half of it back.
extension SimulatedHost {
    func logIn(_ generation: UInt64?) {
        fleet.rules.begins(self, under: generation, now: fleet.now)
        fleet.report.begins(under: generation)
        let password = knownPassword
        guard !latched.contains(password) else {
            let told = failure(.latched)
            return fleet.after(1) { [unowned self, life] in
                guard self.life == life else { return }
                end(.failure(told), .failed(Self.rejected, pause: .seconds(1), longest: .seconds(30), latches: []))
            }
        }
        let known = fleet.engine.model.latches["\(password)"] != nil
        let half =
            fleet.isBad(fleet.weather.slowLogins)
            ? fleet.pick(0...fleet.weather.longestLogin / 2) : fleet.pick(25...400)
        let isUnknown = fleet.isBad(fleet.weather.unknown)
        fleet.after(half) { [unowned self, life] in
            let answer = fleet.server.logIn(password, now: fleet.now, life: fleet.weather.life)
            if case .rejected = answer {
                fleet.rules.rejected(password, from: self, life: life, isAlone: generation == nil, wasKnown: known)
            }
            fleet.after(half) { [unowned self] in
                guard self.life == life else { return }
                over(answer, password, isUnknown: isUnknown)
            }
        }
    }

    private func over(_ answer: SimulatedServer.Answer, _ password: Int, isUnknown: Bool) {
        if isUnknown {
            return end(
                .failure(failure(.failed)),
                .failed(Self.unknown, pause: .seconds(1), longest: .seconds(20), latches: []))
        }
        switch answer {
        case .rejected:
            close(password)
            fleet.rules.learns(self, password)
            let isAlone = !isConnected
            end(
                .failure(failure(.rejected)),
                .failed(Self.rejected, pause: .seconds(1), longest: .seconds(20), latches: [Self.latch(password)]))
            if !isAlone { shareLatches() }
        case .session(let number):
            let ends = wall + fleet.weather.life
            end(
                .success(session(number, ends: ends)),
                .won(session: sealed(number, ends: ends), life: .milliseconds(fleet.weather.life)))
        }
    }

    private func end(_ result: Result<Session, LoginFailure>, _ event: FleetMachine.Event) {
        self.result = result
        if case .won(let session, _) = event { sealed = session }
        on(event)
    }

    func failure(_ code: LoginFailure.Code, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(code, challenge: SimulatedFleet.key.challenge, detail: "", retryAt: retryAt)
    }

    private func session(_ number: Int, ends: Int64) -> Session {
        Session(fields: [InjectedField(name: .authorization, value: Secret("\(number)"))], expiresAt: ends)
    }

    private func sealed(_ number: Int, ends: Int64) -> [UInt8] { Array("\(number) \(ends)".utf8) }

    /// The session that another host has won; `nil` where it has ended by this host's clock.
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
    /// What the server knows it by.
    var number: Int? { fields.first.flatMap { Int($0.value.revealText()) } }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Logging

@testable import ChallengeClient

/// Notes of the daemon about its logins: no secret may be in them.
struct LoginNotes: LoginObserver, @unchecked Sendable {
    private unowned let simulation: Simulation
    private let node: Int
    private let process: Int

    /// Creates the notes of the process that runs now.
    init(_ simulation: Simulation, node: Int) {
        self.simulation = simulation
        self.node = node
        process = simulation.disks[node].process
    }

    /// True until the process ends.
    private var isAlive: Bool { simulation.disks[node].process == process }

    private var place: String { simulation.setting.nodes > 1 ? " by node \(node)" : "" }

    private func check(_ text: String) {
        if SecretWatch.holdsSecret(Array(text.utf8)) { simulation.violated("a secret is told: \(text)") }
    }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        simulation.tell("login of \(key.challenge)\(place) begins: \(cause.kind)")
        simulation.rules.loginBegan(key.challenge, isOfRequest: cause.kind == .request)
        simulation.logins.began(simulation.login(key.challenge, at: node))
        simulation.sessions.loginBegan(key.challenge, cause.kind)
        simulation.carried.isLoggingIn(key.challenge)
    }
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        simulation.tell("login of \(key.challenge)\(place): \(step.text)")
        check("\(step)")
    }
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        simulation.tell("login of \(key.challenge)\(place) ends: \(result)")
        if case .failure(let failure) = result { check("\(failure)") }
        simulation.logins.ended(simulation.login(key.challenge, at: node), result, isAlive: isAlive)
        let isEstablished = (try? result.get())?.isEmpty == false
        simulation.sessions.loginEnded(key.challenge, isEstablished: isEstablished)
        simulation.loginEnded(key.challenge, isEstablished: (try? result.get()) != nil, isEmpty: !isEstablished)
    }
    func sessionAccepted(_ key: SessionKey) {
        simulation.tell("session of \(key.challenge) accepted")
        simulation.protection(ofLogin: key.challenge)?.account.isTakenAsGood()
    }
    func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {}
}

/// The log: no secret may be in it.
struct WatchedLog: LogHandler, @unchecked Sendable {
    private unowned let simulation: Simulation
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    init(_ simulation: Simulation) { self.simulation = simulation }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let text = "\(event.message) \(event.metadata ?? [:])"
        if SecretWatch.holdsSecret(Array(text.utf8)) { simulation.violated("a secret is logged: \(text)") }
    }
}

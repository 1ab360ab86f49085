// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import Secrets
import SessionStoreModel
import Settings
import SharedSessions

@testable import CountersignDaemon

/// The things that two nodes share: sessions, latches and used one-time passwords, in a session store that is always there.
final class SimulatedSessionStore {
    let simulation: Simulation
    private var model = SessionStoreModel()
    private var connections: [StoreConnection] = []
    /// The time of the last opening of each challenge's latches, in ms since 1970.
    private var openings: [String: Int64] = [:]

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Returns a node's connection.
    func connection() -> StoreConnection {
        let connection = StoreConnection(to: self, number: connections.count)
        connections.append(connection)
        return connection
    }

    /// Returns true if a latch of a challenge with that account is closed for all nodes, or was at `time` (ms since 1970).
    func isLatched(_ account: Account, since time: Int64) -> Bool {
        let open = openings.filter { $0.value >= time }.keys
        return (model.latches.values.map(\.challenge) + open).contains { simulation.account(named: $0) === account }
    }

    fileprivate func open(_ challenge: String, at now: Int64) -> Int? {
        openings[challenge] = now
        return carryOut { $0.open(challenge: challenge, now: now) }
    }

    fileprivate func carryOut<Answer>(_ work: (inout SessionStoreModel) -> Answer) -> Answer {
        let answer = work(&model)
        for event in model.takeEvents() {
            for connection in connections { connection.deliver { $0.onEvent?(event) } }
        }
        return answer
    }
}

/// A node's connection to the session store: requests and answers arrive in order, and take their time.
final class StoreConnection: SessionStore {
    private let store: SimulatedSessionStore
    private var requests: [() -> Void] = []
    private var answers: [(StoreConnection) -> Void] = []
    private(set) var isReachable = true
    var onEvent: ((StoreEvent) -> Void)?

    /// Its number among the nodes.
    private let number: Int

    init(to store: SimulatedSessionStore, number: Int) {
        self.store = store
        self.number = number
    }

    private var now: Int64 { store.simulation.now }

    func connect() { deliver { $0.onEvent?(.connected) } }

    func close() { isReachable = false }

    fileprivate func deliver(_ answer: @escaping (StoreConnection) -> Void) {
        answers.append(answer)
        store.simulation.agenda.add { [self] in answers.removeFirst()(self) }
    }

    private func ask<Answer>(
        _ work: @escaping (inout SessionStoreModel, Int64) -> Answer, _ completion: @escaping (Answer?) -> Void
    ) {
        ask({ [store] now in store.carryOut { work(&$0, now) } }, completion)
    }

    private func ask<Answer>(_ work: @escaping (Int64) -> Answer?, _ completion: @escaping (Answer?) -> Void) {
        requests.append { [self] in
            let answer = work(now)
            deliver { completion($0.isReachable ? answer : nil) }
        }
        store.simulation.agenda.add { [self] in requests.removeFirst()() }
    }

    func send(_ request: StoreRequest, for name: String, _ completion: @escaping (StoreReply?) -> Void) {
        ask(
            { [simulation = store.simulation, number] in
                let reply = $0.carryOut(request, for: name, now: $1)
                simulation.tell("session store: \(number): \(request): \(reply)".prefix(300).description)
                return reply
            }, completion)
    }

    func subscribe(to name: String) {}

    func readAttempts(_ completion: @escaping (SharedAttempts?) -> Void) {
        ask(
            { [simulation = store.simulation, number] model, _ in
                let latches = model.latches.sorted { $0.key < $1.key }.map(\.value)
                let challenges = latches.map(\.challenge)
                simulation.tell("session store: \(number): latches of \(challenges) at \(model.latchCount)")
                return SharedAttempts(count: model.latchCount, latches: latches, usedCodes: model.usedCodes)
            }, completion)
    }

    func closeLatches(_ latches: [SharedLatch], _ completion: @escaping (Bool) -> Void) {
        ask(
            { [simulation = store.simulation, number] in
                simulation.tell("session store: \(number): closes latches of \(latches.map(\.challenge))")
                return $0.close(latches, now: $1)
            }, { completion($0 != nil) })
    }

    func openLatches(of challenge: String, _ completion: @escaping (Int?) -> Void) {
        ask({ [store] in store.open(challenge, at: $0) }, completion)
    }

    func markUsed(_ codes: UsedCodes, _ completion: @escaping (Bool) -> Void) {
        ask({ $0.markUsed(codes, now: $1) }, { completion($0 != nil) })
    }
}

/// The part of a node that shares sessions with the other.
struct SimulatedSharing {
    let sharing: LeasedSessionSharing
    let store: SimulatedSessionStore

    /// Returns the digests by which nodes know values.
    static func digests() throws -> SharedDigests {
        let key = Credential(name: "shared", fields: ["key": Secret([UInt8](repeating: UInt8(ascii: "k"), count: 32))])
        return SharedDigests(sealing: try SharingKeys(key), canonical: { $0.canonical })
    }

    /// Creates the part, which shares nothing yet.
    init(
        _ context: SharingContext, _ digests: SharedDigests, through store: SimulatedSessionStore,
        chance: @escaping @Sendable () -> Double
    ) {
        self.store = store
        sharing = LeasedSessionSharing(context, digests: digests, times: LeaseTimes(), random: chance)
    }

    /// Shares the sessions of settings.
    func begin(_ services: ClientServices, _ settings: Settings, _ plans: [UpstreamPlan]) {
        sharing.serve(SharingPlan(settings, plans))
        let connection = SendableConnection(connection: store.connection())
        sharing.begin(services) { _ in connection.connection }
    }
}

/// A connection that one thread uses.
private struct SendableConnection: @unchecked Sendable {
    let connection: StoreConnection
}

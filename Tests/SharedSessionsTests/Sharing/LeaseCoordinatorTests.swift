// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import EventLoop
import SessionStoreModel
import TestSupport
import Testing

@testable import SharedSessions

@Suite("The lease coordinator of a node")
struct LeaseCoordinatorTests {
    private let key = NodesOfTests.key
    private let name = SharingPlan.SharedName(text: "account.scope", configuration: [])

    @Test("a login that begins while another node's session is being opened gets that session, once")
    func untaken() throws {
        let loop = try EventLoop(clock: ManualLoopClock())
        loop.turnOnce()
        let store = ImmediateStore()
        var opening: [[UInt8]] = []
        let coordinator = LeaseCoordinator(
            loop: loop, store: store, gate: SharedAttemptGate(now: { 1_000 }), times: LeaseTimes(), random: { 0 },
            callbacks: LeaseCoordinator.Callbacks(
                adoptSession: { _, _, bytes in opening.append(bytes) }, dropSession: { _ in },
                offerSession: { _, _ in },
                openLatches: { _ in }, updateStatistics: { _ in }))
        defer { coordinator.stop() }
        coordinator.start()
        coordinator.subscribe(to: [(key, name)])
        for session in [[7], [8]] as [[UInt8]] {
            store.offer(session, as: name.text)
            for _ in 0..<3 { loop.turnOnce() }
            #expect(opening.last == session)
            if session == [8] { coordinator.tookSession(session, as: name) }
            #expect(decision(of: coordinator) == (session == [7] ? "session [7]" : "logIn"))
        }
    }

    private func decision(of coordinator: LeaseCoordinator) -> String? {
        var decided: String?
        coordinator.requestSession(key, name, isRenewal: false) {
            switch $0 {
            case .session(let bytes): decided = "session \(bytes)"
            case .logIn: decided = "logIn"
            case .failure, .leftToOther: decided = "\($0)"
            }
        }
        return decided
    }
}

/// A session store that answers at once.
private final class ImmediateStore: SessionStore {
    private var model = SessionStoreModel()
    private let now: Int64 = 1_700_000_000_000
    let isReachable = true
    var onEvent: ((StoreEvent) -> Void)?

    /// Lets another node store a session later than all.
    func offer(_ session: [UInt8], as name: String) {
        let latest = model.entries[name]?.session?.generation ?? 0
        _ = model.carryOut(.offer(after: latest, session: session, lifetime: .seconds(60)), for: name, now: now)
        for event in model.takeEvents() { onEvent?(event) }
    }

    func connect() { onEvent?(.connected) }
    func close() {}
    func send(_ request: StoreRequest, for name: String, _ completion: @escaping (StoreReply?) -> Void) {
        completion(model.carryOut(request, for: name, now: now))
    }
    func subscribe(to name: String) {}
    func readAttempts(_ completion: @escaping (SharedAttempts?) -> Void) { completion(SharedAttempts(count: 0)) }
    func closeLatches(_ latches: [SharedLatch], _ completion: @escaping (Bool) -> Void) { completion(true) }
    func openLatches(of challenge: String, _ completion: @escaping (Int?) -> Void) { completion(0) }
    func markUsed(_ codes: UsedCodes, _ completion: @escaping (Bool) -> Void) { completion(true) }
}

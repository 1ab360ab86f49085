// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import Secrets
import SessionStoreModel
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient
@testable import SharedSessions

@Suite("Latches that nodes share")
struct SharedLatchTests {
    private let key = LatchKey(origin: NodesOfTests.key.origin, challenge: "bank-pin", credential: "pin")
    private let rejected = Credential(name: "pin", fields: ["pin": Secret("9999")])
    private let now: Int64 = 1_000_000_000_000

    /// Returns the gate of a node, which shares its latches by digests that all nodes know.
    private func node() -> SharedAttemptGate {
        let digests = SharedDigests(sealing: OpenSealing(), canonical: NodesOfTests.canonical)
        return SharedAttemptGate(sharedDigests: { digests.digests(of: $1, rejectedFor: $0) }, now: { [now] in now })
    }

    private func isClosed(_ gate: SharedAttemptGate, _ credential: Credential? = nil, now: Int64? = nil) -> Bool {
        let use = CredentialUse(key: key, credential: credential ?? rejected)
        return gate.refusal(of: use, now: now ?? self.now) != nil
    }

    private func close(_ gate: SharedAttemptGate, _ reason: Latch.Reason = .rejected, opensAt: Int64? = nil) async {
        let latch = Latch(reason: reason, closedAt: now, opensAt: opensAt)
        await gate.record(.rejected(latch), of: CredentialUse(key: key, credential: rejected))
    }

    private func closed(_ gate: SharedAttemptGate) -> [String] {
        gate.closed(now: now, replacedIn: nil).map(\.challenge)
    }

    @Test("a latch closes on all nodes after the rejection at one, and opens on all")
    func closed() async throws {
        let nodes = try NodesOfTests(["9999", "9999"])
        defer { nodes.end() }
        let (one, other) = (nodes.nodes[0].services.gate, nodes.nodes[1].services.gate)
        await close(one)
        #expect(isClosed(one))
        #expect(await eventually { isClosed(other) })
        #expect(closed(other) == ["bank-pin"])
        #expect(!isClosed(other, Credential(name: "pin", fields: ["pin": Secret("1234")])))
        // A node whose credential has another value is not affected.
        #expect(closed(other).isEmpty)

        #expect(other.unlatch("bank-pin") == OpenedLatches(earlier: 1))
        nodes.nodes[1].sharing.unlatch("bank-pin")
        #expect(await eventually { closed(one).isEmpty })
        #expect(!isClosed(other))
    }

    @Test("a value that another node saw rejected is not sent once the latches are read")
    func read() async {
        let (one, other) = (node(), node())
        await close(one)
        #expect(!isClosed(other))
        #expect(other.merge(SharedAttempts(count: 1, latches: one.read { $0.shared.unreportedLatches })).isEmpty)
        #expect(isClosed(other))
    }

    @Test("a value that another node saw rejected does not count as accepted any more, even once its latch is opened")
    func acceptance() async {
        let (one, other) = (node(), node())
        for value in ["9999", "1234"] {
            let use = CredentialUse(key: key, credential: Credential(name: "pin", fields: ["pin": Secret(value)]))
            _ = other.refusal(of: use, remaining: .unknown, keeping: 0, now: now)
            await other.record(.accepted(Acceptance(path: "/", at: now, wasAsked: true)), of: use)
            await close(one)
            _ = other.merge(SharedAttempts(count: 1, latches: one.read { $0.shared.unreportedLatches }))
            other.unlatch("bank-pin")
            #expect((other.acceptance(of: use) == nil) == (value == "9999"))
        }
    }

    @Test("a shared latch opens at the time that the server named")
    func opens() async throws {
        let nodes = try NodesOfTests(["9999", "9999"])
        defer { nodes.end() }
        let end: Int64 = 4_000_000_000_000
        await close(nodes.nodes[0].services.gate, .locked, opensAt: end)
        let other = nodes.nodes[1].services.gate
        #expect(await eventually { isClosed(other, now: end - 1) })
        #expect(!isClosed(other, now: end))
    }

    @Test("latches and codes are reported again to a store that lost them")
    func lost() {
        var latches = SharedLatches()
        let latch = SharedLatch(digest: "d", challenge: "bank-pin", latch: Latch(reason: .rejected, closedAt: now))
        let codes = UsedCodes(ends: ["seed": now])
        #expect(latches.merge(SharedAttempts(count: 7, latches: [latch], usedCodes: codes), now: now).isEmpty)
        #expect(latches.unreportedLatches.isEmpty && latches.unreportedCodes.ends.isEmpty)
        #expect(latches.merge(SharedAttempts(count: 0), now: now).isEmpty)
        #expect(latches.unreportedLatches == [latch] && latches.unreportedCodes == codes)
        latches.confirmLatches([latch])
        latches.confirmCodes(codes)
        #expect(latches.unreportedLatches.isEmpty && latches.unreportedCodes.ends.isEmpty)
        #expect(latches.merge(SharedAttempts(count: 1_700_000_000_001), now: now) == ["bank-pin"])
    }

    @Test("a one-time code that one node used is used on all")
    func steps() async throws {
        let nodes = try NodesOfTests(["1", "1"])
        defer { nodes.end() }
        let (one, other) = (nodes.nodes[0].services.gate, nodes.nodes[1].services.gate)
        let end: Int64 = 4_000_000_000_000
        let now = end - 30_000
        #expect(await one.use(code: "seed", stepEnding: end, isUsed: true, now: now) == nil)
        #expect(await eventually { await other.use(code: "seed", stepEnding: end, isUsed: false, now: now) == end })
        #expect(await other.use(code: "seed", stepEnding: end + 30_000, isUsed: false, now: now) == nil)
        // It is not a latch that an operator could see or open.
        #expect(closed(other).isEmpty)
    }
}

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

    /// Stores a session as another node, with the latest generation.
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

@Suite("Work for the session store")
struct LeaseCoordinatorHandleTests {
    @Test(
        "work that waits for the session store costs the same however much waits, and is done in order",
        .timeLimit(.minutes(1)))
    func waiting() {
        let handle = LeaseCoordinatorHandle()
        handle.beginOpening()
        let done = Mutex<[Int]>([])
        for number in 0..<200_000 { handle.execute { _ in done.withLock { $0.append(number) } } }
        #expect(done.withLock { $0.isEmpty })
        handle.close()
        #expect(done.withLock { $0 == Array(0..<200_000) })
        // Closed: at once.
        handle.execute { coordinator in done.withLock { $0 = coordinator == nil ? [] : $0 } }
        #expect(done.withLock { $0.isEmpty })
    }
}

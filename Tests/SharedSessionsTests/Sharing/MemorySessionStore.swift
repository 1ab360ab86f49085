// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import SessionStoreModel
import SharedSessions
import Synchronization
import TestSupport

/// One node's connection to a session store in memory.
final class MemorySessionStore: SessionStore {
    /// The store behind all connections.
    final class Shared: Sendable {
        private struct State {
            var model = SessionStoreModel()
            var listeners: [@Sendable (StoreEvent) -> Void] = []
            var requests = 0
            /// Each is of one node that wants one session.
            var tokens: Set<String> = []
        }

        private let state = Mutex(State())
        private let began = ContinuousClock.now

        /// Number of requests.
        var requests: Int { state.withLock { $0.requests } }

        /// Suspends until so many nodes have asked for a lease.
        func isWanted(by nodes: Int) async {
            await Bell.shared.wait { self.state.withLock { $0.tokens.count } >= nodes }
        }

        fileprivate func note(_ request: StoreRequest) {
            guard case .acquire(_, let token, _) = request else { return }
            state.withLock { _ = $0.tokens.insert(token.text) }
            Bell.shared.ring()
        }

        fileprivate func listen(_ listener: @escaping @Sendable (StoreEvent) -> Void) {
            state.withLock { $0.listeners.append(listener) }
        }

        /// Sends no more events.
        func close() { state.withLock { $0.listeners = [] } }

        fileprivate func change<Value: Sendable>(_ body: (inout SessionStoreModel, Int64) -> Value) -> Value {
            let now = 1_700_000_000_000 + Int64((ContinuousClock.now - began) / .milliseconds(1))
            let (value, events, listeners) = state.withLock { state in
                state.requests += 1
                let value = body(&state.model, now)
                return (value, state.model.takeEvents(), state.listeners)
            }
            for event in events { for listener in listeners { listener(event) } }
            return value
        }
    }

    private(set) var isReachable = false
    var onEvent: ((StoreEvent) -> Void)?
    private let shared: Shared
    private let loop: EventLoop
    private var subscriptions: Set<String> = []

    init(_ shared: Shared, loop: EventLoop) {
        self.shared = shared
        self.loop = loop
    }

    func connect() {
        isReachable = true
        let bound = LoopBound(self, to: loop)
        shared.listen { [loop] event in loop.execute { bound.value.receive(event) } }
        later { self.onEvent?(.connected) }
    }

    func close() { isReachable = false }

    func send(_ request: StoreRequest, for name: String, _ completion: @escaping (StoreReply?) -> Void) {
        let reply = shared.change { $0.carryOut(request, for: name, now: $1) }
        // News of what others do next may overtake the answer, as between two connections.
        shared.note(request)
        later { completion(reply) }
    }

    func subscribe(to name: String) { subscriptions.insert(name) }

    func readAttempts(_ completion: @escaping (SharedAttempts?) -> Void) {
        let known = shared.change { model, _ in
            SharedAttempts(count: model.latchCount, latches: Array(model.latches.values), usedCodes: model.usedCodes)
        }
        later { completion(known) }
    }

    func closeLatches(_ latches: [SharedLatch], _ completion: @escaping (Bool) -> Void) {
        shared.change { $0.close(latches, now: $1) }
        later { completion(true) }
    }

    func openLatches(of challenge: String, _ completion: @escaping (Int?) -> Void) {
        let count = shared.change { $0.open(challenge: challenge, now: $1) }
        later { completion(count) }
    }

    func markUsed(_ codes: UsedCodes, _ completion: @escaping (Bool) -> Void) {
        shared.change { $0.markUsed(codes, now: $1) }
        later { completion(true) }
    }

    private func later(_ body: @escaping () -> Void) {
        let bound = LoopBound(body, to: loop)
        loop.execute { bound.value() }
    }

    private func receive(_ event: StoreEvent) {
        if case .sessionChanged(let name, _) = event, !subscriptions.contains(name) { return }
        onEvent?(event)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EngineModel
import EventLoop
import Synchronization
import TestSupport

/// One host's connection to a session engine in memory.
final class MemoryEngine: SessionEngine {
    /// What all connections lead to.
    final class Shared: Sendable {
        private struct State {
            var model = EngineModel()
            var ears: [@Sendable (EngineModel.News) -> Void] = []
            var requests = 0
            /// Each is of one host that wants one session.
            var tokens: Set<String> = []
        }

        private let state = Mutex(State())
        private let began = ContinuousClock.now

        /// How many requests came.
        var requests: Int { state.withLock { $0.requests } }

        /// Suspends until so many hosts have asked for a lease.
        func isWanted(by hosts: Int) async {
            await Bell.shared.wait { self.state.withLock { $0.tokens.count } >= hosts }
        }

        fileprivate func note(_ request: EngineRequest) {
            guard case .acquire(_, let token, _) = request else { return }
            state.withLock { _ = $0.tokens.insert(token.text) }
            Bell.shared.ring()
        }

        fileprivate func listen(_ ear: @escaping @Sendable (EngineModel.News) -> Void) {
            state.withLock { $0.ears.append(ear) }
        }

        /// Tells nobody any more.
        func close() { state.withLock { $0.ears = [] } }

        fileprivate func change<Value: Sendable>(_ body: (inout EngineModel, Int64) -> Value) -> Value {
            let now = 1_700_000_000_000 + Int64((ContinuousClock.now - began) / .milliseconds(1))
            let (value, news, ears) = state.withLock { state in
                state.requests += 1
                let value = body(&state.model, now)
                return (value, state.model.takeNews(), state.ears)
            }
            for one in news { for ear in ears { ear(one) } }
            return value
        }
    }

    private(set) var isThere = false
    var listener: ((EngineNews) -> Void)?
    private let shared: Shared
    private let loop: EventLoop
    private var followed: Set<String> = []

    init(_ shared: Shared, loop: EventLoop) {
        self.shared = shared
        self.loop = loop
    }

    func begin() {
        isThere = true
        let bound = LoopBound(self, to: loop)
        shared.listen { [loop] news in loop.execute { bound.value.hear(news) } }
        later { self.listener?(.connected) }
    }

    func end() { isThere = false }

    func ask(_ request: EngineRequest, for name: String, _ answered: @escaping (EngineReply?) -> Void) {
        let reply = shared.change { $0.carryOut(request, for: name, now: $1) }
        // News of what others do next may overtake the answer, as between two connections.
        shared.note(request)
        later { answered(reply) }
    }

    func follow(_ name: String) { followed.insert(name) }

    func latches(_ answered: @escaping ((count: UInt64, latches: [SharedLatch])?) -> Void) {
        let known = shared.change { model, _ in (model.latchCount, Array(model.latches.values)) }
        later { answered((known.0, known.1)) }
    }

    func close(_ latches: [SharedLatch], _ answered: @escaping (Bool) -> Void) {
        shared.change { $0.close(latches, now: $1) }
        later { answered(true) }
    }

    func open(challenge: String, _ answered: @escaping (Int?) -> Void) {
        let count = shared.change { $0.open(challenge: challenge, now: $1) }
        later { answered(count) }
    }

    private func later(_ body: @escaping () -> Void) {
        let bound = LoopBound(body, to: loop)
        loop.execute { bound.value() }
    }

    private func hear(_ news: EngineModel.News) {
        switch news {
        case .latches(let count): listener?(.latches(count: count))
        case .session(let name, let generation):
            if followed.contains(name) { listener?(.session(name: name, generation: generation)) }
        }
    }
}

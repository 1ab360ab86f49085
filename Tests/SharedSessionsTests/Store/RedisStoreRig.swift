// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import EventLoop
import Glibc
import Secrets
import Synchronization
import TestSupport

@testable import SharedSessions

/// A session store's client on a loop of its own, for tests that await.
final class RedisStoreRig: Sendable {
    private let thread: EventLoopThread
    private let sessionStore: LoopBound<RedisStore>
    /// Events of the client.
    let events = EventBox()

    /// Starts a client of the session store of `plan`. Its timeout and its pauses use `clock`.
    init(_ plan: RedisStorePlan, credential: [String: String]? = nil, clock: ManualLoopClock? = nil) async throws {
        thread = try EventLoopThread(name: "session store", clock: clock) { _ in }
        let (loop, events) = (thread.loop, events)
        let known = credential.map { ["session store": $0.mapValues { Secret($0) }] }
        sessionStore = try await withCheckedThrowingContinuation { done in
            loop.execute {
                do {
                    let sessionStore = RedisStore(
                        plan, loop: loop, driver: try CurlDriver(loop: loop, connections: 1 << 20),
                        credentials: known.map { FixedCredentials($0) }, wallClock: wallClock)
                    sessionStore.onEvent = { events.put($0) }
                    sessionStore.connect()
                    done.resume(returning: LoopBound(sessionStore, to: loop))
                } catch {
                    done.resume(throwing: error)
                }
            }
        }
    }

    /// Starts a client of `server` whose clock stands still, so that it never times out.
    convenience init(_ server: RedisServer) async throws {
        try await self.init(RedisStorePlan(server), clock: ManualLoopClock())
    }

    deinit {
        let sessionStore = sessionStore
        thread.loop.execute { sessionStore.value.close() }
        thread.loop.stop()
        // The thread has to end before the process, which may end with this test: its memory would count as leaked.
        thread.join()
    }

    /// Returns the result of `body` on the loop of the store.
    func with<Value: Sendable>(_ body: @escaping @Sendable (RedisStore) -> Value) async -> Value {
        let sessionStore = sessionStore
        return await withCheckedContinuation { done in
            thread.loop.execute { done.resume(returning: body(sessionStore.value)) }
        }
    }

    /// Returns the value that `body` passes to its completion.
    func answer<Value: Sendable>(
        _ body: @escaping @Sendable (RedisStore, @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let sessionStore = sessionStore
        return await withCheckedContinuation { done in
            thread.loop.execute { body(sessionStore.value) { done.resume(returning: $0) } }
        }
    }

    func ask(_ request: StoreRequest, for name: String = "bank") async -> StoreReply? {
        await answer { sessionStore, done in sessionStore.send(request, for: name) { done($0) } }
    }

    /// Sends the request `times` times for `name`, and returns once all are sent. The task's value has the replies.
    func begin(_ request: StoreRequest, for name: String = "bank", times: Int = 1) async -> Task<[StoreReply?], Never> {
        let replies = Mutex<[StoreReply?]>([])
        await with { sessionStore in
            for _ in 0..<times {
                sessionStore.send(request, for: name) { reply in
                    replies.withLock { $0.append(reply) }
                    Bell.shared.ring()
                }
            }
        }
        return Task {
            await Bell.shared.wait { replies.withLock { $0.count } == times }
            return replies.withLock { $0 }
        }
    }

    func latches() async -> SharedAttempts? {
        await answer { sessionStore, done in sessionStore.readAttempts { done($0) } }
    }

    func close(_ latches: [SharedLatch]) async -> Bool {
        await answer { sessionStore, done in sessionStore.closeLatches(latches) { done($0) } }
    }

    func markUsed(_ codes: [String: Int64]) async -> Bool {
        await answer { sessionStore, done in sessionStore.markUsed(UsedCodes(ends: codes)) { done($0) } }
    }

    func open(_ challenge: String) async -> Int? {
        await answer { sessionStore, done in sessionStore.openLatches(of: challenge) { done($0) } }
    }

    func follow(_ names: String...) async {
        await with { sessionStore in for name in names { sessionStore.subscribe(to: name) } }
    }

    var isThere: Bool {
        get async { await with { $0.isReachable } }
    }

    /// Returns the reason of the next event, which has to report that the session store is away.
    func reasonAway() async -> String {
        if case .disconnected(let reason) = await events.next() { reason } else { "" }
    }
}

/// Events that the test has not taken yet.
final class EventBox: Sendable {
    private let state = Mutex<(events: [StoreEvent], waiter: CheckedContinuation<StoreEvent, Never>?)>(([], nil))

    func put(_ events: StoreEvent) {
        let waiter = state.withLock { state -> CheckedContinuation<StoreEvent, Never>? in
            guard let waiter = state.waiter else {
                state.events.append(events)
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume(returning: events)
    }

    /// Returns the next event, and waits for it if necessary.
    func next() async -> StoreEvent {
        await withCheckedContinuation { waiter in
            let there = state.withLock { state -> StoreEvent? in
                if state.events.isEmpty {
                    state.waiter = waiter
                    return nil
                }
                return state.events.removeFirst()
            }
            if let there { waiter.resume(returning: there) }
        }
    }
}

/// Milliseconds since 1970.
func wallClock() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

extension RedisStorePlan {
    /// The session store of `server`, at its socket.
    init(_ server: RedisServer) { self.init(endpoint: .socket(server.socket)) }
}

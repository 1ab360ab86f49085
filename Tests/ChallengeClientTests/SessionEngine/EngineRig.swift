// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import EventLoop
import Glibc
import Secrets
import Synchronization
import TestSupport

@testable import ChallengeClient

/// An engine's client on a loop of its own, for tests that await.
final class EngineRig: Sendable {
    private let thread: EventLoopThread
    private let engine: LoopBound<RedisEngine>
    /// What it is told unasked.
    let news = NewsBox()

    /// A client of the engine of `plan`, which begins at once. Its patience and its pauses are by `clock`.
    init(_ plan: RedisEnginePlan, credential: [String: String]? = nil, clock: ManualLoopClock? = nil) async throws {
        thread = try EventLoopThread(name: "engine", clock: clock) { _ in }
        let (loop, news) = (thread.loop, news)
        let known = credential.map { ["engine": $0.mapValues { Secret($0) }] }
        engine = try await withCheckedThrowingContinuation { done in
            loop.execute {
                do {
                    let engine = RedisEngine(
                        plan, loop: loop, driver: try CurlDriver(loop: loop, connections: 1 << 20),
                        credentials: known.map { FixedCredentials($0) }, wallClock: wallClock)
                    engine.listener = { news.put($0) }
                    engine.begin()
                    done.resume(returning: LoopBound(engine, to: loop))
                } catch {
                    done.resume(throwing: error)
                }
            }
        }
    }

    /// A client of `server` for which no time passes: it waits for as long as an answer takes.
    convenience init(_ server: RedisServer) async throws {
        try await self.init(RedisEnginePlan(server), clock: ManualLoopClock())
    }

    deinit {
        let engine = engine
        thread.loop.execute { engine.value.end() }
        thread.loop.stop()
        // It is to be over before the process is, which may be with this test: what it holds would count as lost.
        thread.join()
    }

    /// What `body` makes of the engine, on its loop.
    func with<Value: Sendable>(_ body: @escaping @Sendable (RedisEngine) -> Value) async -> Value {
        let engine = engine
        return await withCheckedContinuation { done in
            thread.loop.execute { done.resume(returning: body(engine.value)) }
        }
    }

    /// What `body` hands to the function that it is given.
    func answer<Value: Sendable>(
        _ body: @escaping @Sendable (RedisEngine, @escaping @Sendable (Value) -> Void) -> Void
    ) async -> Value {
        let engine = engine
        return await withCheckedContinuation { done in
            thread.loop.execute { body(engine.value) { done.resume(returning: $0) } }
        }
    }

    func ask(_ request: EngineRequest, for name: String = "bank") async -> EngineReply? {
        await answer { engine, done in engine.ask(request, for: name) { done($0) } }
    }

    /// Asks so often for `name`, and returns once all of it is on its way, with what is told of the replies.
    func begin(_ request: EngineRequest, for name: String = "bank", times: Int = 1) async -> Task<[EngineReply?], Never>
    {
        let replies = Mutex<[EngineReply?]>([])
        await with { engine in
            for _ in 0..<times {
                engine.ask(request, for: name) { reply in
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

    func latches() async -> (count: UInt64, latches: [SharedLatch])? {
        await answer { engine, done in engine.latches { done($0) } }
    }

    func close(_ latches: [SharedLatch]) async -> Bool {
        await answer { engine, done in engine.close(latches) { done($0) } }
    }

    func open(_ challenge: String) async -> Int? {
        await answer { engine, done in engine.open(challenge: challenge) { done($0) } }
    }

    func follow(_ names: String...) async {
        await with { engine in for name in names { engine.follow(name) } }
    }

    var isThere: Bool {
        get async { await with { $0.isThere } }
    }

    /// The reason of the next news, which is that it is away.
    func reasonAway() async -> String {
        if case .away(let reason) = await news.next() { reason } else { "" }
    }
}

/// What was told and nobody has taken yet; one test takes it.
final class NewsBox: Sendable {
    private let state = Mutex<(news: [EngineNews], waiter: CheckedContinuation<EngineNews, Never>?)>(([], nil))

    func put(_ news: EngineNews) {
        let waiter = state.withLock { state -> CheckedContinuation<EngineNews, Never>? in
            guard let waiter = state.waiter else {
                state.news.append(news)
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume(returning: news)
    }

    /// The next one, which may have to come first.
    func next() async -> EngineNews {
        await withCheckedContinuation { waiter in
            let there = state.withLock { state -> EngineNews? in
                if state.news.isEmpty {
                    state.waiter = waiter
                    return nil
                }
                return state.news.removeFirst()
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

extension RedisEnginePlan {
    /// The engine of `server`, at its socket.
    init(_ server: RedisServer) { self.init(place: .socket(server.socket)) }
}

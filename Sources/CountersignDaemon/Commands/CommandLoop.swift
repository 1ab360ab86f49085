// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import EventLoop

/// A loop with a client on it, for a command.
struct CommandLoop: Sendable {
    private let thread: EventLoopThread
    private let runtime: LoopBound<ClientRuntime>

    static func start(services: ClientServices) async throws -> CommandLoop {
        let (stream, continuation) = AsyncStream<LoopBound<ClientRuntime>>.makeStream()
        let thread = try EventLoopThread(name: "login") { loop in
            if let runtime = try? ClientRuntime(loop: loop, worker: 0, services: services, connections: 8) {
                continuation.yield(LoopBound(runtime, to: loop))
            }
            continuation.finish()
        }
        for await runtime in stream { return CommandLoop(thread: thread, runtime: runtime) }
        throw CompositionError("libcurl cannot be initialised")
    }

    func sideRequests(for login: Authenticator, at plan: UpstreamPlan) async -> any SideRequests {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                continuation.resume(
                    returning: runtime.value.logins.sideRequests(for: login, at: plan, cause: LoginCause(.command)))
            }
        }
    }

    /// Side requests in nobody's name.
    func anonymousRequests(at plan: UpstreamPlan) async -> any SideRequests {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                continuation.resume(returning: LoopSideRequests(runtime: runtime.value, plan: plan))
            }
        }
    }

    /// A connection as the transfers of `plan` make it.
    func probe(_ origin: Origin, of plan: UpstreamPlan, checks: Bool) async -> ConnectionProbe {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                ConnectionProbe.run(origin, of: plan, on: runtime.value, checks: checks) {
                    continuation.resume(returning: $0)
                }
            }
        }
    }

    /// What a session engine tells first; after `limit` that it says nothing.
    func firstNews(
        of plan: RedisEnginePlan, credentials: any CredentialProvider, within limit: Duration
    ) async -> EngineNews {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                let loop = runtime.value.loop
                guard let driver = try? runtime.value.connections() else {
                    continuation.resume(returning: .away(reason: "libcurl cannot be initialised"))
                    return
                }
                let engine = RedisEngine(
                    plan, loop: loop, driver: driver, credentials: credentials, wallClock: Process.wallClock)
                let timer = LazyTimer(loop: loop)
                let end: (EngineNews) -> Void = { news in
                    guard engine.listener != nil else { return }
                    engine.listener = nil
                    timer.cancel()
                    timer.onExpiry = nil
                    // Not from within its own call.
                    let bound = LoopBound(engine, to: loop)
                    loop.execute { bound.value.end() }
                    continuation.resume(returning: news)
                }
                engine.listener = end
                timer.onExpiry = { end(.away(reason: "it says nothing within \(limit)")) }
                timer.arm(at: loop.now + LoopDelay(limit))
                engine.begin()
            }
        }
    }

    func stop() {
        thread.loop.stop()
        thread.join()
    }
}

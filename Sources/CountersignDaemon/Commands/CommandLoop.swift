// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import EventLoop
internal import SharedSessions
internal import System

/// An event loop with a client on its own thread, for a command.
struct CommandLoop: Sendable {
    private let thread: EventLoopThread
    private let runtime: LoopBound<ClientRuntime>

    /// The loop.
    var loop: EventLoop { thread.loop }

    /// Starts the thread. Throws if libcurl or the thread cannot be started.
    static func start(services: ClientServices) async throws -> CommandLoop {
        let (stream, continuation) = AsyncStream<LoopBound<ClientRuntime>>.makeStream()
        let thread = try EventLoopThread(name: "login") { loop in
            if let runtime = try? ClientRuntime(loop: loop, worker: 0, services: services, connections: 8) {
                continuation.yield(LoopBound(runtime, to: loop))
            }
            continuation.finish()
        }
        for await runtime in stream { return CommandLoop(thread: thread, runtime: runtime) }
        throw CompositionError("libcurl cannot be initialised", mayPass: true)
    }

    /// Returns the side requests of `login`, as a login of the daemon has them.
    func sideRequests(for login: Authenticator, at plan: UpstreamPlan) async -> any SideRequests {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                continuation.resume(
                    returning: runtime.value.logins.sideRequests(for: login, at: plan, cause: LoginCause(.command)))
            }
        }
    }

    /// Returns side requests without a login.
    func anonymousRequests(at plan: UpstreamPlan) async -> any SideRequests {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                continuation.resume(returning: LoopSideRequests(runtime: runtime.value, plan: plan, login: ""))
            }
        }
    }

    /// Connects to `origin` as a transfer of `plan` would, and returns the result.
    func probe(_ origin: Origin, of plan: UpstreamPlan, checks: Bool) async -> ConnectionProbe {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                ConnectionProbe.run(origin, of: plan, on: runtime.value, checks: checks) {
                    continuation.resume(returning: $0)
                }
            }
        }
    }

    /// Returns the first event of a session store, or a disconnection after `limit` without one.
    func firstEvent(
        of plan: RedisStorePlan, credentials: any CredentialProvider, within limit: Duration
    ) async -> StoreEvent {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                let loop = runtime.value.loop
                guard let driver = try? runtime.value.connections() else {
                    continuation.resume(returning: .disconnected(reason: "libcurl cannot be initialised"))
                    return
                }
                let store = RedisStore(
                    plan, loop: loop, driver: driver, credentials: credentials, wallClock: SystemClock.wallClock)
                let timer = LazyTimer(loop: loop)
                let end: (StoreEvent) -> Void = { event in
                    guard store.onEvent != nil else { return }
                    store.onEvent = nil
                    timer.cancel()
                    timer.onExpiry = nil
                    // The store must not be closed from within its own callback.
                    let bound = LoopBound(store, to: loop)
                    loop.execute { bound.value.close() }
                    continuation.resume(returning: event)
                }
                store.onEvent = end
                timer.onExpiry = { end(.disconnected(reason: "no answer within \(limit)")) }
                timer.arm(at: loop.now + LoopDelay(limit))
                store.connect()
            }
        }
    }

    /// Stops the loop and waits for the end of its thread.
    func stop() {
        thread.loop.stop()
        thread.join()
    }
}

/// Bridge from a synchronous command to `async` code.
enum Blocking {
    /// Never stopped: a resumer may still use the loop after the task has ended.
    private static let thread = try? EventLoopThread(name: "command", setUp: { _ in })

    /// Runs `work` on a separate thread. Blocks the calling thread, the main one, until `work` ends.
    ///
    /// Not on the thread pool: the daemon's unit, within which commands run as well, forbids the priorities that it needs.
    static func run<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
        let result = Promise<Value>()
        if let thread {
            Task(executorPreference: thread.loop) { result.fulfill(await work()) }
        } else {
            Task { result.fulfill(await work()) }
        }
        return result.wait()
    }
}

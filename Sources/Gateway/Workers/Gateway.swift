// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
internal import EventLoop
package import Logging
internal import Synchronization

/// The whole gateway: its listening sockets and its workers. Driven from one thread, the main one.
package final class Gateway {
    private struct Crew {
        let thread: EventLoopThread
        let worker: Handover<LoopBound<Worker>>
    }

    /// Counters.
    package let figures = GatewayFigures()
    private let services: ClientServices
    private let limits: WorkerLimits
    private let logger: Logger
    private var crews: [Crew] = []
    private var sockets: [(point: ListenPoint, descriptor: Int32)] = []

    /// A gateway of `workers` threads, not yet started. `limits` are those of all workers together.
    package init(services: ClientServices, workers: Int, limits: WorkerLimits, logger: Logger) throws {
        self.services = services
        self.logger = logger
        let workers = max(1, workers)
        var own = limits
        own.callers = Self.share(of: limits.callers, among: workers)
        own.exchanges = Self.share(of: limits.exchanges, among: workers)
        self.limits = own
        for number in 0..<workers { crews.append(try startWorker(number)) }
    }

    /// Rounded up, at least one.
    private static func share(of limit: Int, among workers: Int) -> Int {
        max(1, limit / workers + (limit % workers > 0 ? 1 : 0))
    }

    private func startWorker(_ number: Int) throws -> Crew {
        let handover = Handover<LoopBound<Worker>>()
        let (services, limits, figures, logger) = (services, limits, figures, logger)
        let thread = try EventLoopThread(name: "worker-\(number)") { loop in
            let worker = try? Worker(
                loop: loop, number: number, services: services, limits: limits, figures: figures, logger: logger)
            handover.put(worker.map { LoopBound($0, to: loop) })
        }
        guard handover.wait() != nil else { throw GatewayError.noLibcurl }
        return Crew(thread: thread, worker: handover)
    }

    /// Opens the listeners of `plan` that are not open yet, has all workers accept, and closes those that the plan has
    /// no more. Throws with nothing changed if one cannot be opened that is not optional.
    package func apply(_ plan: GatewayPlan) throws(ListenError) {
        var opened: [(point: ListenPoint, descriptor: Int32)] = []
        var served: [(point: ListenPoint, plan: ListenerPlan)] = []
        for (point, listener) in zip(plan.points, plan.listeners) {
            do throws(ListenError) {
                if let known = sockets.first(where: { $0.point == point }) {
                    opened.append(known)
                } else {
                    opened.append((point, try point.open()))
                }
                served.append((point, listener))
            } catch {
                if listener.isOptional {
                    logger.warning(
                        "listener left out", metadata: ["listener": "\(listener.name)", "reason": "\(error.reason)"])
                    continue
                }
                for new in opened where !sockets.contains(where: { $0.descriptor == new.descriptor }) {
                    new.point.close(new.descriptor)
                }
                throw error
            }
        }
        let descriptors = opened.map(\.descriptor)
        let plan = GatewayPlan(listeners: served, upstreams: plan.upstreams)
        onEveryWorker { $0.apply(plan, sockets: descriptors) }
        for old in sockets where !descriptors.contains(old.descriptor) { old.point.close(old.descriptor) }
        sockets = opened
    }

    /// The descriptors of the listening sockets, in the plan's order.
    package var descriptors: [Int32] { sockets.map(\.descriptor) }

    /// The workers' loops, for whoever watches over them.
    package var pulse: WorkerPulse { WorkerPulse(loops: crews.map(\.thread.loop)) }

    /// Accepts nothing more and calls `done`, on some worker's thread, when the last connection is closed.
    package func drain(_ done: @escaping @Sendable () -> Void) {
        // Closed before anything is waited for, so that a new caller is refused and can go elsewhere, instead of waiting in
        // a queue that nobody serves. One that the service manager holds too stays open there.
        onEveryWorker { $0.stopAccepting() }
        closeSockets()
        let left = Counter(crews.count)
        for crew in crews {
            guard let bound = crew.worker.wait() else { continue }
            crew.thread.loop.execute {
                bound.value.drain { if left.countDown() { done() } }
            }
        }
    }

    /// Closes every connection and ends the threads.
    package func stop() {
        onEveryWorker { $0.abandon() }
        for crew in crews { crew.thread.loop.stop() }
        for crew in crews { crew.thread.join() }
        // The workers and what they share hold each other.
        for number in crews.indices { services.roster.dismiss(worker: number) }
        crews = []
        closeSockets()
    }

    private func closeSockets() {
        for socket in sockets { socket.point.close(socket.descriptor) }
        sockets = []
    }

    /// Runs `body` on each worker's thread, and waits for all.
    private func onEveryWorker(_ body: @escaping @Sendable (Worker) -> Void) {
        for crew in crews {
            guard let bound = crew.worker.wait() else { continue }
            let done = Handover<Bool>()
            crew.thread.loop.execute {
                body(bound.value)
                done.put(true)
            }
            _ = done.wait()
        }
    }
}

/// Why a gateway could not be made.
package enum GatewayError: Error, CustomStringConvertible {
    /// libcurl gave no multi handle.
    case noLibcurl

    /// In words.
    package var description: String { "libcurl cannot be initialised" }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
package import EventLoop
package import Logging
internal import Synchronization

/// The whole proxy: its listening sockets and its workers. Driven from one thread, the main one.
package final class ProxyServer {
    private struct Crew {
        let thread: EventLoopThread
        let worker: Handover<LoopBound<Worker>>
    }

    /// Counters.
    package let figures = ProxyFigures()
    private let services: ClientServices
    private let limits: WorkerLimits
    private let logger: Logger
    private let log: ExchangeLog
    private var crews: [Crew] = []
    private var sockets: [ListenSocket] = []
    private let counts: SharedCounts
    /// The places of each listener, by its name.
    private var listenerCallers: [String: CallerPlaces] = [:]
    private let peers = WorkerPeers()

    /// A proxy of `workers` threads, not yet started. `limits` are those of all workers together. Their time is the system's, or
    /// that of a clock that is turned by hand.
    package init(
        services: ClientServices, workers: Int, limits: WorkerLimits, logger: Logger, clock: ManualLoopClock? = nil
    ) throws {
        self.services = services
        self.logger = logger
        log = ExchangeLog(logger: logger, wallClock: services.wallClock)
        self.limits = limits
        counts = SharedCounts(
            callers: CallerPlaces(limit: limits.callers), exchanges: SharedCount(limit: limits.exchanges))
        let workers = max(1, workers)
        let upstreamConnections = max(64, min(limits.exchanges / workers, 1024))
        for number in 0..<workers {
            crews.append(try startWorker(number, clock, upstreamConnections: upstreamConnections))
        }
        peers.introduce(members)
    }

    /// Sets the bounds of all workers together; callers and exchanges that are there already stay.
    package func setLimits(callers: Int, exchanges: Int) {
        counts.callers.setLimit(callers)
        counts.exchanges.setLimit(exchanges)
    }

    private func startWorker(_ number: Int, _ clock: ManualLoopClock?, upstreamConnections: Int) throws -> Crew {
        let handover = Handover<LoopBound<Worker>>()
        let (services, limits, counts, figures, log, peers) = (services, limits, counts, figures, log, peers)
        let thread = try EventLoopThread(name: "worker-\(number)", clock: clock) { loop in
            let worker = try? Worker(
                loop: loop, number: number, services: services, limits: limits, counts: counts,
                upstreamConnections: upstreamConnections, figures: figures, log: log, peers: peers)
            handover.put(worker.map { LoopBound($0, to: loop) })
        }
        guard handover.wait() != nil else { throw ProxyError.noLibcurl }
        return Crew(thread: thread, worker: handover)
    }

    /// Opens the listeners of `plan` that are not open yet, has all workers accept, and closes those that the plan has
    /// no more. Throws with nothing changed if one cannot be opened that is not optional.
    package func apply(_ plan: ProxyPlan) throws(ListenError) {
        let (opened, served) = try open(plan)
        do throws(ListenError) {
            try setPermissions(of: opened)
        } catch {
            closeNew(opened)
            throw error
        }
        for (socket, (_, listener)) in zip(opened, served) { socket.callers.setLimit(listener.callers) }
        let plan = ProxyPlan(listeners: served, upstreams: plan.upstreams, accessLog: plan.accessLog)
        let gone = sockets.filter { old in !opened.contains { $0.descriptor == old.descriptor } }
        for old in gone { old.seal() }
        onEveryWorker { $0.apply(plan, sockets: opened) }
        for old in gone { old.close() }
        sockets = opened
        counts.callers.keep(for: Set(plan.listeners.filter { !$0.isLocal }.map(\.name)))
        let names = Set(plan.listeners.map(\.name))
        listenerCallers = listenerCallers.filter { names.contains($0.key) }
    }

    private typealias Served = [(point: ListenPoint, plan: ListenerPlan)]

    /// The sockets of a plan, those already open and new ones, and what is served at them.
    private func open(_ plan: ProxyPlan) throws(ListenError) -> ([ListenSocket], Served) {
        var opened: [ListenSocket] = []
        var served: Served = []
        for (point, listener) in zip(plan.points, plan.listeners) {
            do throws(ListenError) {
                let known = sockets.first { $0.point.isSamePlace(as: point) }
                let descriptor = if let known { known.descriptor } else { try point.open() }
                opened.append(
                    ListenSocket(
                        point: point, descriptor: descriptor, file: known.map(\.file) ?? point.file,
                        callers: callers(of: listener)))
                served.append((point, listener))
            } catch {
                if listener.isOptional {
                    logger.warning(
                        "listener left out", metadata: ["listener": "\(listener.name)", "reason": "\(error.reason)"])
                    continue
                }
                closeNew(opened)
                throw error
            }
        }
        return (opened, served)
    }

    private func callers(of listener: ListenerPlan) -> CallerPlaces {
        if let known = listenerCallers[listener.name] { return known }
        let places = CallerPlaces(limit: listener.callers)
        listenerCallers[listener.name] = places
        return places
    }

    /// Sets the permissions of sockets that stay open and are to have others, all or none.
    private func setPermissions(of opened: [ListenSocket]) throws(ListenError) {
        var changed: [ListenPoint] = []
        for socket in opened {
            guard let old = sockets.first(where: { $0.descriptor == socket.descriptor }), old.point != socket.point
            else {
                continue
            }
            do throws(ListenError) {
                try socket.point.setPermissions()
                changed.append(old.point)
            } catch {
                for point in changed { try? point.setPermissions() }
                throw error
            }
        }
    }

    private func closeNew(_ opened: [ListenSocket]) {
        for new in opened where !sockets.contains(where: { $0.descriptor == new.descriptor }) {
            new.close()
        }
    }

    /// The descriptors of the listening sockets, in the plan's order.
    package var descriptors: [Int32] { sockets.map(\.descriptor) }

    /// The workers' loops, for whoever watches over them.
    package var pulse: WorkerPulse { WorkerPulse(loops: crews.map(\.thread.loop)) }

    /// What the workers have counted, for whoever wants to know.
    package private(set) lazy var readings: WorkerReadings = {
        WorkerReadings(members: members, figures: figures, counts: counts)
    }()

    private var members: [WorkerMember] {
        crews.enumerated().compactMap { number, crew in
            crew.worker.wait().map { WorkerMember(number: number, loop: crew.thread.loop, worker: $0) }
        }
    }

    /// Accepts nothing more and calls `done`, on some worker's thread, when the last connection is closed.
    package func drain(_ done: @escaping @Sendable () -> Void) {
        // Closed before anything is waited for, so that a new caller is refused and can go elsewhere, instead of waiting in
        // a queue that nobody serves. One that the service manager holds too stays open there.
        for socket in sockets { socket.seal() }
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

    /// Ends a drain that takes too long: exchanges whose response has not begun get `draining`, all others are cut off. What
    /// `drain` was given is called when the replies are gone, too.
    package func turnAway() { onEveryWorker { $0.turnAway() } }

    /// Logs how often what was logged has happened since, where that is due; to be called now and then.
    package func tellRepetitions() { log.tellRepetitions() }

    /// Closes every connection and ends the threads.
    package func stop() {
        onEveryWorker { $0.abandon() }
        for crew in crews { crew.thread.loop.stop() }
        for crew in crews { crew.thread.join() }
        // The workers and what they share hold each other.
        for number in crews.indices { services.roster.dismiss(worker: number) }
        peers.introduce([])
        crews = []
        closeSockets()
        log.tellRepetitions(all: true)
    }

    private func closeSockets() {
        for socket in sockets { socket.close() }
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

/// The reason for which a proxy could not be made.
package enum ProxyError: Error, CustomStringConvertible {
    /// libcurl gave no multi handle.
    case noLibcurl

    /// In words.
    package var description: String { "libcurl cannot be initialised" }
}

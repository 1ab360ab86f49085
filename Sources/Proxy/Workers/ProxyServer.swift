// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
package import Curl
package import EventLoop
package import Logging
internal import Synchronization
internal import System

/// The whole proxy: its listening sockets and its workers. Driven by one thread, the main one.
package final class ProxyServer {
    private struct Crew {
        let thread: EventLoopThread
        let worker: LoopBound<Worker>
    }

    /// Counters of the proxy.
    package let figures = ProxyFigures()
    private let services: ClientServices
    private let limits: WorkerLimits
    private let logger: Logger
    private let log: ExchangeLog
    private var crews: [Crew] = []
    private var sockets: [ListenSocket] = []
    private let counts: SharedCounts
    /// The connection quotas of each listener, by its name.
    private var listenerCallers: [String: ConnectionQuotas] = [:]
    private let peers = WorkerPeers()

    /// Starts the thread of a worker: its name, its clock, and its set-up.
    package typealias WorkerStart = (
        String, ManualLoopClock?, @escaping @Sendable (EventLoop) -> Void
    ) throws -> EventLoopThread

    /// Makes a proxy with `workers` threads. `limits` apply to all workers together. `clock` replaces the system's time in tests.
    ///
    /// Throws if a worker cannot be started; those that were are stopped then.
    package init(
        services: ClientServices, workers: Int, limits: WorkerLimits, logger: Logger, clock: ManualLoopClock? = nil,
        start: WorkerStart = { try EventLoopThread(name: $0, clock: $1, setUp: $2) }
    ) throws {
        self.services = services
        self.logger = logger
        log = ExchangeLog(logger: logger, wallClock: services.wallClock)
        self.limits = limits
        counts = SharedCounts(
            callers: ConnectionQuotas(limit: limits.callers), exchanges: SharedCount(limit: limits.exchanges))
        let workers = max(1, workers)
        let upstreamConnections = max(64, min(limits.exchanges / workers, 1024))
        do {
            for number in 0..<workers {
                crews.append(try startWorker(number, clock, upstreamConnections: upstreamConnections, start))
            }
        } catch {
            stop()
            throw error
        }
        peers.introduce(members)
    }

    /// Sets the limits of all workers together. Present callers and exchanges stay.
    package func setLimits(callers: Int, exchanges: Int) {
        counts.callers.setLimit(callers)
        counts.exchanges.setLimit(exchanges)
    }

    private func startWorker(
        _ number: Int, _ clock: ManualLoopClock?, upstreamConnections: Int, _ start: WorkerStart
    ) throws -> Crew {
        let made = Promise<Result<LoopBound<Worker>, CurlError>>()
        let (services, limits, counts, figures, log, peers) = (services, limits, counts, figures, log, peers)
        let thread = try start("worker-\(number)", clock) { loop in
            do throws(CurlError) {
                let worker = try Worker(
                    loop: loop, number: number, services: services, limits: limits, counts: counts,
                    upstreamConnections: upstreamConnections, figures: figures, log: log, peers: peers)
                made.fulfill(.success(LoopBound(worker, to: loop)))
            } catch {
                made.fulfill(.failure(error))
            }
        }
        switch made.wait() {
        case .success(let worker): return Crew(thread: thread, worker: worker)
        case .failure(let error):
            thread.loop.stop()
            thread.join()
            throw ProxyError.noLibcurl(error)
        }
    }

    /// Opens new listeners of `plan`, has all workers accept, and closes listeners that are gone. Throws, with nothing changed,
    /// if a listener that is not optional cannot be opened.
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
        counts.callers.reserve(for: Set(plan.listeners.filter { !$0.isLocal }.map(\.name)))
        let names = Set(plan.listeners.map(\.name))
        listenerCallers = listenerCallers.filter { names.contains($0.key) }
    }

    private typealias Served = [(point: ListenPoint, plan: ListenerPlan)]

    /// Returns the sockets of a plan, reused or opened, and the listeners served at them.
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

    private func callers(of listener: ListenerPlan) -> ConnectionQuotas {
        if let known = listenerCallers[listener.name] { return known }
        let quotas = ConnectionQuotas(limit: listener.callers)
        listenerCallers[listener.name] = quotas
        return quotas
    }

    /// Changes the permissions of open sockets, all or none.
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

    /// Returns the upstreams that fail at present, by name.
    package var outages: @Sendable () -> [String: UpstreamOutage] { { [log] in log.outages } }

    /// Forgets the outages of all other upstreams.
    package func keepOutages(of names: Set<String>) { log.keepOutages(of: names) }

    /// The descriptors of the listening sockets, in the order of the plan.
    package var descriptors: [Int32] { sockets.map(\.descriptor) }

    /// Watches whether the workers' loops turn.
    package var pulse: WorkerPulse { WorkerPulse(loops: crews.map(\.thread.loop)) }

    /// The readings of all workers.
    package private(set) lazy var readings: WorkerReadings = {
        WorkerReadings(members: members, figures: figures, counts: counts)
    }()

    private var members: [WorkerMember] {
        crews.enumerated().map { number, crew in
            WorkerMember(number: number, loop: crew.thread.loop, worker: crew.worker)
        }
    }

    /// Stops accepting, and calls `done` on a worker's thread when the last connection is closed.
    package func drain(_ done: @escaping @Sendable () -> Void) {
        // Closed first, so that a new caller is refused and can go elsewhere instead of waiting in a queue that is not
        // served. A socket that the service manager holds as well stays open there.
        for socket in sockets { socket.seal() }
        onEveryWorker { $0.stopAccepting() }
        closeSockets()
        let drains = CompletionGroup(of: crews.count, then: done)
        for crew in crews {
            crew.thread.loop.execute { crew.worker.value.drain { drains.completeOne() } }
        }
    }

    /// Ends a drain that takes too long. Exchanges without a response so far get `draining`, all others are cut off. The callback
    /// of `drain` is called once the replies are sent.
    package func turnAway() { onEveryWorker { $0.turnAway() } }

    /// Logs the counts of repeated messages that are due; to be called regularly.
    package func logRepetitions() { log.logRepetitions() }

    /// Closes every connection and ends the threads.
    package func stop() {
        onEveryWorker { $0.abandon() }
        for crew in crews { crew.thread.loop.stop() }
        for crew in crews { crew.thread.join() }
        // Breaks the reference cycles between the workers and their shared objects.
        for number in crews.indices { services.roster.dismiss(worker: number) }
        peers.introduce([])
        crews = []
        closeSockets()
        log.logRepetitions(all: true)
    }

    private func closeSockets() {
        for socket in sockets { socket.close() }
        sockets = []
    }

    /// Runs `body` on each worker's thread, and waits for all.
    private func onEveryWorker(_ body: @escaping @Sendable (Worker) -> Void) {
        for crew in crews {
            let done = Promise<Void>()
            crew.thread.loop.execute {
                body(crew.worker.value)
                done.fulfill(())
            }
            done.wait()
        }
    }
}

/// Error because of which a proxy could not be made.
package enum ProxyError: Error, CustomStringConvertible {
    /// libcurl gave no multi handle.
    case noLibcurl(CurlError)

    /// The error in words.
    package var description: String {
        switch self {
        case .noLibcurl(let error): "libcurl cannot be initialized: \(error)"
        }
    }
}

/// All that the proxy serves; replaced by a reload.
package struct ProxyPlan: Sendable {
    /// The addresses that it listens on, in order.
    package var points: [ListenPoint]
    /// The plans of the listeners, in the same order.
    package var listeners: [ListenerPlan]
    /// The upstreams.
    package var upstreams: [UpstreamPlan]
    /// The destination of access records, if any.
    package var accessLog: (any AccessRecorder)?

    /// Makes a plan.
    package init(
        listeners: [(point: ListenPoint, plan: ListenerPlan)], upstreams: [UpstreamPlan],
        accessLog: (any AccessRecorder)? = nil
    ) {
        self.accessLog = accessLog
        points = listeners.map(\.point)
        self.listeners = listeners.map(\.plan)
        self.upstreams = upstreams
    }
}

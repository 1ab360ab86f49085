// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import EventLoop
internal import Glibc
internal import HTTPWire

/// One thread's share of the proxy: its loop, its callers' connections, its transfers. Nothing of an exchange ever
/// leaves it.
final class Worker: WaitHook {
    let loop: EventLoop
    let runtime: ClientRuntime
    let limits: WorkerLimits
    /// `limits.quietTime` for the loop.
    let quietDelay: LoopDelay
    /// What is left of `limits.idleTime` then.
    let idleDelay: LoopDelay
    /// The time for the first byte of a connection.
    let silentDelay: LoopDelay
    /// Who calls over TCP.
    let owners = SocketOwners()
    private(set) var isDraining = false
    let number: Int
    /// What it counts.
    let meter = WorkerMeter()
    private let services: ClientServices
    let figures: ProxyFigures
    let log: ExchangeLog
    /// Where access records go, if anywhere.
    private(set) var accessLog: (any AccessRecorder)?
    /// True if there is one; for each request, as a look at the value itself copies it.
    private(set) var hasAccessLog = false
    private var clients: [String: UpstreamClient] = [:]
    /// The upstream that was asked for last: mostly the next request is for it, too, and no name is hashed.
    private var latest: UpstreamClient?
    private var acceptors: [Int32: Acceptor] = [:]
    /// The upstreams that this worker asks whether they serve: the first one does, for all.
    private var checks: [UpstreamCheck] = []
    let counts: SharedCounts
    let refused: RefusedCallers
    let peers: WorkerPeers
    private let memory: SpareMemory
    var connections: [Int32: any WorkerConnection] = [:]
    /// Callers for whom other workers look for a place.
    var waiting: [Int32: AcceptedCaller] = [:]
    /// Connections that may be closed for other callers, as they were found last.
    var vacancies = Vacancies()
    private var noted: [any WorkerConnection] = []
    /// The memory for the next turn's list; two that take turns, so that a turn costs no allocation.
    private var spare: [any WorkerConnection] = []
    private var dateSecond: Int64 = -1
    private var dateText = ""
    private var onDrained: (() -> Void)?

    init(
        loop: EventLoop, number: Int, services: ClientServices, limits: WorkerLimits, counts: SharedCounts,
        upstreamConnections: Int, figures: ProxyFigures, log: ExchangeLog, peers: WorkerPeers
    ) throws(CurlError) {
        self.peers = peers
        self.loop = loop
        self.number = number
        self.services = services
        self.limits = limits
        self.counts = counts
        refused = RefusedCallers(loop: loop)
        let quietTime = min(limits.quietTime, limits.idleTime)
        quietDelay = LoopDelay(quietTime)
        idleDelay = LoopDelay(limits.idleTime - quietTime)
        silentDelay = LoopDelay(min(limits.silentTime, limits.headTime))
        memory = SpareMemory(loop: loop)
        self.figures = figures
        self.log = log
        runtime = try ClientRuntime(
            loop: loop, worker: number, services: services, connections: upstreamConnections)
        loop.add(self)
    }

    // MARK: Plans

    /// Takes up a plan: the listeners' sockets are those given, the upstreams new. Connections and sessions stay.
    func apply(_ plan: ProxyPlan, sockets: [ListenSocket]) {
        accessLog = plan.accessLog
        hasAccessLog = accessLog != nil
        latest = nil
        var former = clients
        clients = Dictionary(
            plan.upstreams.map { plan in
                (plan.name, UpstreamClient(plan: plan, runtime: runtime, after: former.removeValue(forKey: plan.name)))
            }, uniquingKeysWith: { $1 })
        for client in former.values { client.retire() }
        if number == 0 { check(plan.upstreams) }
        for (fd, acceptor) in acceptors where !sockets.contains(where: { $0.descriptor == fd }) {
            acceptor.stop()
            acceptors[fd] = nil
        }
        for (socket, listener) in zip(sockets, plan.listeners) {
            if let acceptor = acceptors[socket.descriptor] {
                acceptor.plan = listener
            } else {
                acceptors[socket.descriptor] = Acceptor(socket: socket, plan: listener, worker: self)
            }
        }
    }

    private func check(_ upstreams: [UpstreamPlan]) {
        for check in checks { check.stop() }
        services.checks.keep(upstreams.filter { $0.check != nil }.map(\.name), now: services.wallClock())
        checks = upstreams.compactMap { upstream in
            guard let plan = upstream.check, let client = clients[upstream.name] else { return nil }
            return UpstreamCheck(plan, of: client) { [log] in log.checked(upstream.name, $0) }
        }
        for check in checks { check.start() }
    }

    func client(named name: String) -> UpstreamClient? {
        if let latest, latest.plan.name == name { return latest }
        latest = clients[name]
        return latest
    }

    // MARK: Connections

    /// Turns away whoever waits first where there is no descriptor left. Whether there was somebody.
    func refuseFirst(at socket: Int32, of listener: ListenerPlan) -> Bool {
        log.trouble(
            "callers refused", at: listener.name,
            "no file descriptor is left: raise LimitNOFILE= of the unit, or lower limits.callers")
        guard refused.refuseFirst(at: socket) else { return false }
        meter.refused(.noDescriptor)
        return true
    }

    func connectionClosed(_ connection: some WorkerConnection) {
        figures.connectionClosed()
        connections[connection.caller.descriptor] = nil
        tellIfDrained()
    }

    /// Something else is spoken on a caller's connection from now on.
    func replace(by connection: some WorkerConnection) {
        connections[connection.caller.descriptor] = connection
        note(connection)
    }

    /// `connection` has something to do in this turn.
    func note(_ connection: some WorkerConnection) {
        guard !connection.isNoted else { return }
        connection.isNoted = true
        noted.append(connection)
    }

    func beforeWait(now: LoopInstant) -> WaitAdvice {
        guard !noted.isEmpty else { return WaitAdvice(didWork: false) }
        var turn: [any WorkerConnection] = []
        swap(&turn, &spare)
        swap(&turn, &noted)
        for index in turn.indices { turn[index].turn() }
        // One by one: for the few that there are, it takes less than to remove all.
        while turn.popLast() != nil {}
        swap(&turn, &spare)
        return WaitAdvice(didWork: true)
    }

    /// A connection has given back so many bytes of memory.
    func gaveBack(_ bytes: Int) { memory.gaveBack(bytes) }

    // MARK: Exchanges

    /// Returns whether another exchange may begin; then it counts.
    func admitExchange() -> Bool {
        guard counts.exchanges.enter() else { return false }
        meter.exchangeBegan()
        return true
    }

    func exchangeEnded() { counts.exchanges.leave() }

    func tunnelOpened() { figures.tunnelOpened() }

    func tunnelClosed() { figures.tunnelClosed() }

    /// Logs that nobody's uid is known at a listener that asks for it.
    func logBlindness(of listener: ListenerPlan) {
        log.trouble(
            "callers unknown", at: listener.name,
            "the kernel does not tell whose sockets are connected: `users` lets nobody in")
    }

    /// Logs that a response was cut off because its caller did not take it.
    func logStall(of listener: ListenerPlan) {
        log.trouble("caller cut off", at: listener.name, "it has not read its response for a while")
    }

    func wallClock() -> Int64 { services.wallClock() }

    /// Now, as a `Date` field has it.
    func date() -> String {
        let second = services.wallClock() / 1000
        if second != dateSecond {
            dateSecond = second
            var queue = ByteQueue()
            HTTPDate.append(secondsSince1970: second, to: &queue)
            dateText = queue.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        }
        return dateText
    }

    // MARK: The end

    /// Accepts nothing more; the sockets may be closed then.
    func stopAccepting() {
        isDraining = true
        for acceptor in acceptors.values { acceptor.stop() }
        acceptors = [:]
        for check in checks { check.stop() }
        checks = []
    }

    /// Closes what is idle, lets exchanges finish, and then calls `done`. Nothing is accepted any more.
    func drain(_ done: @escaping () -> Void) {
        onDrained = done
        for connection in connections.values { connection.closeIfIdle() }
        tellIfDrained()
    }

    /// The time for that is over: refuses the exchanges that have brought nothing yet, and closes all others.
    func turnAway() {
        for connection in connections.values { connection.turnAway() }
    }

    /// Closes what is left.
    func abandon() {
        for connection in connections.values { connection.close() }
        for descriptor in waiting.keys { _ = close(descriptor) }
        waiting = [:]
        refused.closeAll()
        for check in checks { check.stop() }
        memory.close()
    }

    func tellIfDrained() {
        guard isDraining, connections.isEmpty, waiting.isEmpty, let onDrained else { return }
        self.onDrained = nil
        onDrained()
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import EventLoop
internal import Glibc
internal import HTTPWire

/// One thread's share of the proxy: its loop, its callers' connections, its transfers. An exchange never leaves its worker.
final class Worker: WaitHook {
    let loop: EventLoop
    let runtime: ClientRuntime
    let limits: WorkerLimits
    /// `limits.quietTime` for the loop.
    let quietDelay: LoopDelay
    /// The rest of `limits.idleTime` after `quietDelay`.
    let idleDelay: LoopDelay
    /// The timeout for the first byte of a connection.
    let silentDelay: LoopDelay
    /// Finds the users of callers over TCP.
    let owners = SocketOwners()
    private(set) var isDraining = false
    let number: Int
    /// Counters of this worker.
    let meter = WorkerMeter()
    private let services: ClientServices
    let figures: ProxyFigures
    let log: ExchangeLog
    /// The destination of access records, if any.
    private(set) var accessLog: (any AccessRecorder)?
    /// True if there is an access log. Read for each request, because reading `accessLog` copies it.
    private(set) var hasAccessLog = false
    private var clients: [String: UpstreamClient] = [:]
    /// The upstream used last. The next request is mostly for the same one, which saves hashing a name.
    private var latest: UpstreamClient?
    private var acceptors: [Int32: Acceptor] = [:]
    /// The health checks of upstreams. The first worker runs them for all workers.
    private var checks: [UpstreamCheck] = []
    let counts: SharedCounts
    let refused: RefusedCallers
    let peers: WorkerPeers
    private let memory: SpareMemory
    /// Input buffers of connections whose input is empty.
    var spareInputs = SpareBuffers(size: CallerStream.firstInput, most: 64)
    var connections: [Int32: any WorkerConnection] = [:]
    /// Callers for whom other workers look for a connection to close.
    var waiting: [Int32: AcceptedCaller] = [:]
    /// Connections that may be closed for other callers, from the last search.
    var vacancies = Vacancies()
    private var queue: [any WorkerConnection] = []
    /// The storage of the next turn's list. Two lists alternate, so a turn does not allocate.
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

    /// Applies a plan: the given sockets of the listeners, and new upstreams. Connections and sessions stay.
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
        services.checks.setUpstreams(upstreams.filter { $0.check != nil }.map(\.name), now: services.wallClock())
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

    /// Refuses the first waiting caller if no descriptor is left. Returns true if there was one.
    func refuseFirst(at socket: Int32, of listener: ListenerPlan) -> Bool {
        log.problem(
            "callers refused", at: listener.name,
            "no file descriptor is left: raise LimitNOFILE= of the unit, or lower limits.callers")
        guard refused.refuseFirst(at: socket) else { return false }
        meter.refused(.noDescriptor)
        return true
    }

    /// Removes a closed connection, which frees `bytes` bytes of buffers, and what its exchange holds.
    func connectionClosed(_ connection: some WorkerConnection, holding bytes: Int) {
        figures.connectionClosed()
        connections[connection.caller.descriptor] = nil
        memory.connectionClosed(left: connections.count, holding: bytes)
        notifyIfDrained()
    }

    /// Replaces a caller's connection after a change of protocol.
    func replace(by connection: some WorkerConnection) {
        connections[connection.caller.descriptor] = connection
        enqueue(connection)
    }

    /// Enqueues a connection that has something to do in this turn.
    func enqueue(_ connection: some WorkerConnection) {
        guard !connection.isEnqueued else { return }
        connection.isEnqueued = true
        queue.append(connection)
    }

    func beforeWait(now: LoopInstant) -> WaitAdvice {
        guard !queue.isEmpty else { return WaitAdvice(didWork: false) }
        var turn: [any WorkerConnection] = []
        swap(&turn, &spare)
        swap(&turn, &queue)
        for index in turn.indices { turn[index].turn() }
        // Removed one by one, which is faster than `removeAll` for a few.
        while turn.popLast() != nil {}
        swap(&turn, &spare)
        return WaitAdvice(didWork: true)
    }

    /// Records released memory of a connection.
    func released(_ bytes: Int) { memory.released(bytes) }

    // MARK: Exchanges

    /// Counts another exchange and returns true if one may begin.
    func admitExchange() -> Bool {
        guard counts.exchanges.enter() else { return false }
        meter.exchangeBegan()
        return true
    }

    func exchangeEnded() { counts.exchanges.leave() }

    func tunnelOpened() { figures.tunnelOpened() }

    func tunnelClosed() { figures.tunnelClosed() }

    /// Logs that a listener with `users` cannot determine the users of callers.
    func logBlindness(of listener: ListenerPlan) {
        log.problem(
            "callers unknown", at: listener.name,
            "the kernel does not report the owners of sockets, so `users` admits no caller")
    }

    /// Logs that the kernel refuses to watch a listener's socket.
    func logUnwatched(_ listener: ListenerPlan) {
        log.problem(
            "callers wait", at: listener.name,
            "the kernel refuses to watch the socket (epoll_ctl: memory, or fs.epoll.max_user_watches); it is tried again"
        )
    }

    /// Logs that a caller is closed because the kernel refuses to watch its connection.
    func logUnwatchedCaller(of listener: ListenerPlan) {
        log.problem(
            "caller cut off", at: listener.name,
            "the kernel refuses to watch its connection (epoll_ctl: memory, or fs.epoll.max_user_watches)")
    }

    /// Logs that a response was cut off because its caller did not read it.
    func logStall(of listener: ListenerPlan) {
        log.problem("caller cut off", at: listener.name, "it has not read its response for a while")
    }

    func wallClock() -> Int64 { services.wallClock() }

    /// Returns the present time in the format of a `Date` field.
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

    /// Stops accepting callers. The sockets may be closed afterwards.
    func stopAccepting() {
        isDraining = true
        for acceptor in acceptors.values { acceptor.stop() }
        acceptors = [:]
        for check in checks { check.stop() }
        checks = []
    }

    /// Closes idle connections, lets exchanges finish, and then calls `done`. No caller is accepted any more.
    func drain(_ done: @escaping () -> Void) {
        onDrained = done
        for connection in connections.values { connection.closeIfIdle() }
        notifyIfDrained()
    }

    /// Ends a drain: refuses exchanges without a response so far, and closes all other connections.
    func turnAway() {
        for connection in connections.values { connection.turnAway() }
    }

    /// Closes all connections that are left.
    func abandon() {
        for connection in connections.values { connection.close() }
        for descriptor in waiting.keys { _ = close(descriptor) }
        waiting = [:]
        refused.closeAll()
        for check in checks { check.stop() }
        memory.close()
    }

    func notifyIfDrained() {
        guard isDraining, connections.isEmpty, waiting.isEmpty, let onDrained else { return }
        self.onDrained = nil
        onDrained()
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPWire

/// One upstream as one worker sees it: its idle transfers, and its routes with their sessions.
package final class UpstreamClient {
    /// What it is.
    package let plan: UpstreamPlan
    /// The upstream's authority, for `Host`.
    package let authority: [UInt8]
    /// Whether callers get clients of their own; like `forwarding` apart from the plan, which is long to copy.
    package let dependsOnCaller: Bool
    /// How requests and responses are changed.
    package let forwarding: ForwardingPolicy
    /// `timeouts.response` for the loop.
    let responseDelay: LoopDelay
    /// `timeouts.idle` for the loop.
    let idleDelay: LoopDelay
    let runtime: ClientRuntime
    /// What is counted of its exchanges on this worker.
    package let meter: UpstreamMeter
    private let uniform: RouteSessions
    var routes = RouteMemory()
    /// Until when no body waits for the upstream's word, which it has not given lately.
    var expectationsIgnoredUntil = LoopInstant(nanoseconds: 0)
    private var lessons: UInt64 = 0
    /// Whether requests go over express lines.
    private let goesExpress: Bool
    /// Where nothing binds a connection to a user.
    let commonPool: TransferPool
    private var pools: [ConnectionGroup: TransferPool] = [:]
    /// Those for callers with an identity of their own, by its number.
    private var identities: [Int: UpstreamClient] = [:]

    /// The client of `plan` on the worker of `runtime`. `former`: the one before it, whose lines it takes over where they lead to
    /// the same; else they are closed.
    package init(plan: UpstreamPlan, runtime: ClientRuntime, after former: UpstreamClient? = nil) {
        self.plan = plan
        authority = Array(plan.base.origin.authority.utf8)
        dependsOnCaller = plan.dependsOnCaller
        forwarding = plan.forwarding
        responseDelay = LoopDelay(plan.timeouts.response)
        idleDelay = LoopDelay(plan.timeouts.idle)
        self.runtime = runtime
        goesExpress = plan.goesExpress
        var rest: ExpressRest?
        if let former, former.plan.base.origin == plan.base.origin, former.plan.connections == plan.connections {
            rest = former.commonPool.rest
            former.retireOthers()
        } else {
            former?.retire()
        }
        meter = runtime.meters.meter(of: plan.name)
        commonPool = plan.pool(of: runtime.driver, on: runtime, rest: rest)
        uniform = RouteSessions(slots: plan.logins.standingEverywhere.map { .init(login: $0, scope: $0.defaultScope) })
        runtime.enlist(self)
    }

    deinit { runtime.delist(self) }

    // MARK: Callers

    /// The client for a caller of that uid; `nil`: a caller who is no user of this machine.
    package func client(for user: UInt32?) -> UpstreamClient {
        guard let number = plan.identity(of: user) else { return self }
        if let known = identities[number] { return known }
        let made = UpstreamClient(plan: plan.identities[number], runtime: runtime)
        identities[number] = made
        return made
    }

    /// The lines go that are bound to a user.
    func retireOthers() {
        for pool in pools.values { pool.rest.close() }
        for client in identities.values { client.retire() }
    }

    // MARK: Routes

    /// What stands at the route of a request.
    func route(method: RequestMethod, target: borrowing ByteQueue) -> RouteSessions {
        if plan.logins.isEmpty { return uniform }
        if plan.learned.version != lessons { takeLessons() }
        if !routes.isEmpty, let known = routes.route(method: method, target: target) { return known }
        guard !plan.logins.isUniform else { return uniform }
        let key = RouteKey(method: method, target: target)
        let slots = slots(at: key)
        let route = routes.equal(to: slots) ?? RouteSessions(slots: slots)
        routes.remember(route, for: key)
        return route
    }

    /// Has every snapshot be one of what is held now.
    func refreshSnapshots() {
        let now = runtime.wallClock()
        uniform.refresh(from: runtime.gate, now: now)
        routes.forEach { $0.refresh(from: runtime.gate, now: now) }
    }

    /// The logins that stand at a route, with the scopes of the configuration.
    private func slots(at key: RouteKey) -> [RouteSessions.Slot] {
        if plan.logins.isUniform { return uniform.slots }
        let url = WebURL(origin: plan.base.origin, path: key.pathText)
        let method = key.method.name
        return plan.logins.standing(at: Location(url)).map { login in
            .init(login: login, scope: login.scope(method: method, path: url.path))
        }
    }

    /// Takes over what any worker has learned of this upstream's scopes.
    private func takeLessons() {
        lessons = plan.learned.version
        for (key, lesson) in plan.learned.all {
            var slots = slots(at: key)
            guard slots.indices.contains(lesson.slot) else { continue }
            slots[lesson.slot] = .init(login: slots[lesson.slot].login, scope: lesson.scope)
            routes.remember(routes.equal(to: slots) ?? RouteSessions(slots: slots), for: key)
        }
    }

    // MARK: Transfers

    /// An idle transfer, or a new one; throws when libcurl is out of memory.
    func transfer(
        for owner: any TransferOwner, request: ExchangeRequest, at route: RouteSessions, sessions: SessionFields
    ) throws(CurlError) -> Transfer {
        let pool = try pool(of: route.connections)
        if request.isUpgrade { return try makeLine(for: owner, in: pool, isUpgrade: true) }
        if let credential = sessions.connection, !request.keepsCredentials, !request.goesUnbound {
            return try transfer(for: owner, by: pool.driver, authenticatingBy: credential)
        }
        if goesExpress {
            guard let transfer = pool.rest.take(for: request, on: runtime.loop) else {
                return try makeLine(for: owner, in: pool)
            }
            transfer.owner = owner
            return transfer
        }
        let transfer: Transfer
        if let last = pool.take() {
            transfer = last
        } else {
            transfer = try makeTransfer(
                by: pool.driver, mayBeHTTP2: plan.connections.mayBeHTTP2(to: plan.base.origin))
        }
        transfer.owner = owner
        return transfer
    }

    /// A transfer with all that the settings say of connections.
    func makeTransfer(by driver: CurlDriver, mayBeHTTP2: Bool) throws(CurlError) -> Transfer {
        let transfer = try Transfer(
            driver: driver, mayBeHTTP2: mayBeHTTP2, isOverTLS: plan.base.origin.scheme == .https,
            versions: VersionSwitch(plan.connections, mayBeHTTP2: mayBeHTTP2))
        try transfer.easy.setAddress(plan.base.origin.description + "/")
        try transfer.easy.set(.connectTimeout, plan.timeouts.connect)
        try plan.connections.apply(to: transfer.easy, for: plan.base.origin)
        return transfer
    }

    /// All that is known of why `transfer` failed.
    func failure(_ error: CurlError, of transfer: Transfer) -> TransferFailure {
        TransferFailure(error, of: transfer.easy, isProxied: plan.connections.proxy != nil)
    }

    /// The transfers of a route whose connections are those of `group`.
    func pool(of group: ConnectionGroup) throws(CurlError) -> TransferPool {
        if group.isCommon { return commonPool }
        if let known = pools[group] { return known }
        let made = plan.pool(of: try runtime.driver(of: group), on: runtime)
        pools[group] = made
        return made
    }

    /// Takes a transfer of a route back; one that still runs is ended, with its connection.
    func giveBack(_ transfer: Transfer, of route: RouteSessions?) {
        transfer.owner = nil
        if let line = transfer.line {
            transfer.reset()
            line.rest.put(transfer, now: runtime.loop.now)
            return
        }
        let group = route?.connections
        (group.flatMap { $0.isCommon ? nil : pools[$0] } ?? commonPool).giveBack(transfer)
    }

    /// Sets method, target and framing, and hands libcurl the fields of `head`.
    func prepare(
        _ transfer: Transfer, request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue
    ) throws(CurlError) {
        transfer.isHeadRequest = request.method == .head
        transfer.upload = Transfer.Upload(request)
        // A line sends the head as it is.
        guard transfer.line == nil else { return }
        try transfer.takeFields(of: head)
        try transfer.shape.apply(request, to: transfer)
        try target.withSpan { (bytes) throws(CurlError) in
            try transfer.easy.set(.requestTarget, bytes: bytes)
        }
    }
}

extension UpstreamPlan {
    /// A pool without transfers yet.
    fileprivate func pool(
        of driver: CurlDriver, on runtime: ClientRuntime, rest: ExpressRest? = nil
    ) -> TransferPool {
        let mayShare = connections.mayBeHTTP2(to: base.origin) && connections.sharesConnections(to: base.origin)
        return TransferPool(
            driver: driver, sharedStart: mayShare ? SharedStart(loop: runtime.loop, driver: driver) : nil,
            rest: rest ?? ExpressRest(limit: goesExpress ? runtime.connectionLimit : 0))
    }
}

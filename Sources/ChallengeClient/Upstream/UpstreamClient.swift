// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPWire

/// One upstream as one worker sees it: its streams, and what is known of its routes and of itself.
package final class UpstreamClient {
    /// The upstream, as it is configured.
    package let plan: UpstreamPlan
    /// The upstream's authority, for `Host`.
    package let authority: [UInt8]
    /// True if callers get clients of their own; like `forwarding` apart from the plan, which is long to copy.
    package let dependsOnCaller: Bool
    /// The changes to requests and responses.
    package let forwarding: ForwardingPolicy
    /// `timeouts.response` for the loop.
    let responseDelay: LoopDelay
    /// `timeouts.idle` for the loop.
    let idleDelay: LoopDelay
    let runtime: ClientRuntime
    /// The counters of its exchanges on this worker.
    package let meter: UpstreamMeter
    /// The logins at each of its routes.
    let routes: RouteTable
    /// The judge of its answers.
    let examiner: Examiner
    /// Its habit of saying 100.
    var expectations = ExpectationMemory()
    /// True if the upstream will speak HTTP/1.1.
    private let speaksHTTP1: Bool
    /// The streams whose connections nothing binds to a user.
    let commonPool: TransferPool
    private var pools: [ConnectionGroup: TransferPool] = [:]
    /// Those for callers with an identity of their own, by its number.
    private var identities: [Int: UpstreamClient] = [:]

    /// The client of `plan` on the worker of `runtime`. `former`: the one before it, whose connections it takes over where they lead to
    /// the same; else they are closed.
    package init(plan: UpstreamPlan, runtime: ClientRuntime, after former: UpstreamClient? = nil) {
        self.plan = plan
        authority = Array(plan.base.origin.authority.utf8)
        dependsOnCaller = plan.dependsOnCaller
        forwarding = plan.forwarding
        responseDelay = LoopDelay(plan.timeouts.response)
        idleDelay = LoopDelay(plan.timeouts.idle)
        self.runtime = runtime
        speaksHTTP1 = !plan.connections.mayBeHTTP2(to: plan.base.origin)
        var rest: RestingStreams?
        if let former, former.plan.base.origin == plan.base.origin, former.plan.connections == plan.connections {
            rest = former.commonPool.rest
            former.retireOthers()
        } else {
            former?.retire()
        }
        meter = runtime.meters.meter(of: plan.name)
        commonPool = plan.pool(of: runtime.driver, on: runtime, rest: rest)
        routes = RouteTable(plan: plan)
        examiner = Examiner(gate: runtime.gate, routes: routes, wallClock: runtime.services.wallClock)
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

    /// The connections go that are bound to a user.
    func retireOthers() {
        for pool in pools.values { pool.rest.close() }
        for client in identities.values { client.retire() }
    }

    /// The upstream is no longer in the configuration: its connections go, those in use after their requests.
    package func retire() {
        commonPool.rest.close()
        retireOthers()
    }

    // MARK: Streams

    /// True if requests for another protocol go up as such. Not where the settings want HTTP/2 and nothing else, which has
    /// no `Upgrade` (RFC 9113 section 8.2.2): there they are ordinary requests.
    package var takesUpgrades: Bool { plan.connections.version != .http2 }

    /// An idle stream, or a new one; throws when libcurl is out of memory.
    func stream(
        for request: ExchangeRequest, at route: RouteSessions, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream {
        let pool = try pool(of: route.connections)
        // One that asks for another protocol has a connection of its own, which goes with it.
        if request.isUpgrade { return try makeHTTP1Stream(in: pool, isUpgrade: true) }
        if let credential = sessions.connection, !request.keepsCredentials, !request.goesUnbound {
            let stream = try makeCurlStream(in: pool, mayBeHTTP2: false)
            try stream.authenticateConnection(by: credential)
            return stream
        }
        if speaksHTTP1 {
            if let rested = pool.rest.take(for: request, on: runtime.loop) { return rested }
            return try makeHTTP1Stream(in: pool)
        }
        if let idle = pool.take() { return idle }
        return try makeCurlStream(in: pool, mayBeHTTP2: plan.connections.mayBeHTTP2(to: plan.base.origin))
    }

    private func makeHTTP1Stream(in pool: TransferPool, isUpgrade: Bool = false) throws(CurlError) -> HTTP1Stream {
        let easy = try EasyHandle()
        try prepare(easy)
        // ALPN must not choose HTTP/2, where nothing can be upgraded.
        try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        try easy.connectOnly()
        let proxy = plan.connections.proxy ?? ""
        let connection = UpstreamConnection(
            easy: easy, driver: try runtime.connections(), loop: runtime.loop, idleDelay: idleDelay,
            isSecure: plan.base.origin.scheme == .https || proxy.lowercased().hasPrefix("https"))
        return HTTP1Stream(
            driver: pool.driver, easy: easy, connection: connection, rest: pool.rest,
            isProxied: plan.connections.proxy != nil, isUpgrade: isUpgrade)
    }

    private func makeCurlStream(in pool: TransferPool, mayBeHTTP2: Bool) throws(CurlError) -> CurlStream {
        let stream = try CurlStream(
            driver: pool.driver, pool: pool, mayBeHTTP2: mayBeHTTP2, isOverTLS: plan.base.origin.scheme == .https,
            isProxied: plan.connections.proxy != nil,
            versions: VersionSwitch(plan.connections, mayBeHTTP2: mayBeHTTP2))
        try prepare(stream.easy)
        return stream
    }

    /// Sets all that the settings say of connections.
    private func prepare(_ easy: EasyHandle) throws(CurlError) {
        try easy.setAddress(plan.base.origin.description + "/")
        try easy.set(.connectTimeout, plan.timeouts.connect)
        try plan.connections.apply(to: easy, for: plan.base.origin)
    }

    /// The streams of a route whose connections are those of `group`.
    private func pool(of group: ConnectionGroup) throws(CurlError) -> TransferPool {
        if group.isCommon { return commonPool }
        if let known = pools[group] { return known }
        let made = plan.pool(of: try runtime.driver(of: group), on: runtime)
        pools[group] = made
        return made
    }
}

extension UpstreamPlan {
    /// A pool without transfers yet.
    fileprivate func pool(
        of driver: CurlDriver, on runtime: ClientRuntime, rest: RestingStreams? = nil
    ) -> TransferPool {
        let mayShare = connections.mayBeHTTP2(to: base.origin) && connections.sharesConnections(to: base.origin)
        return TransferPool(
            driver: driver, sharedStart: mayShare ? SharedStart(loop: runtime.loop, driver: driver) : nil,
            rest: rest ?? RestingStreams(limit: connections.mayBeHTTP2(to: base.origin) ? 0 : runtime.connectionLimit))
    }
}

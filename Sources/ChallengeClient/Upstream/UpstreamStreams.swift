// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop

/// The source of the streams that carry requests to one upstream.
protocol StreamSource: AnyObject {
    /// A stream for `request`, whose connection is one of `group`; throws when libcurl is out of memory. `sessions`: the fields that the
    /// request carries.
    func stream(
        for request: ExchangeRequest, at group: ConnectionGroup, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream
    /// Closes the connections that are bound to a user: those that rest now, those in use after their requests.
    func closeBound()
    /// Closes all, in the same way.
    func close()
}

/// The streams of one upstream on one worker: idle ones, and new ones by its settings.
final class UpstreamStreams: StreamSource {
    private let plan: UpstreamPlan
    private let runtime: ClientRuntime
    /// `timeouts.idle` for the loop.
    private let idleDelay: LoopDelay
    /// True if the upstream will speak HTTP/1.1.
    private let speaksHTTP1: Bool
    /// The streams whose connections nothing binds to a user.
    private let common: TransferPool
    private var bound: [ConnectionGroup: TransferPool] = [:]

    /// Streams by `plan`. `former`: those before it, whose resting connections are taken over.
    init(plan: UpstreamPlan, runtime: ClientRuntime, idleDelay: LoopDelay, after former: UpstreamStreams?) {
        self.plan = plan
        self.runtime = runtime
        self.idleDelay = idleDelay
        speaksHTTP1 = !plan.connections.mayBeHTTP2(to: plan.base.origin)
        common = plan.pool(of: runtime.driver, on: runtime, rest: former?.common.rest)
    }

    func closeBound() {
        for pool in bound.values { pool.rest.close() }
    }

    func close() {
        common.rest.close()
        closeBound()
    }

    func stream(
        for request: ExchangeRequest, at group: ConnectionGroup, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream {
        let pool = group.isCommon ? common : try pool(of: group)
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

    private func pool(of group: ConnectionGroup) throws(CurlError) -> TransferPool {
        if let known = bound[group] { return known }
        let made = plan.pool(of: try runtime.driver(of: group), on: runtime)
        bound[group] = made
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

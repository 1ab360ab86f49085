// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop

/// The source of the streams that carry requests to one upstream.
protocol StreamSource: AnyObject {
    /// Returns a stream for `request` on one of `connections`; throws if libcurl is out of memory.
    ///
    /// `sessions`: the fields that the request carries.
    func stream(
        for request: ExchangeRequest, on connections: ConnectionUse, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream
    /// Returns a stream for a request by which a caller may authenticate its connection, if possible on the idle one of
    /// `handshake`, to which it returns.
    func stream(
        for request: ExchangeRequest, returningTo handshake: IdleStreams<HTTP1Stream>
    ) throws(CurlError) -> any UpstreamStream
    /// Closes the connections bound to sessions that have ended. `now` in milliseconds since 1970.
    func endOutdated(by gate: SharedAttemptGate, now: Int64)
    /// Closes the connections bound to a user: idle ones now, busy ones after their requests.
    func closeBound()
    /// Closes all connections in the same way.
    func close()
    /// Returns the source for `plan`, which has the same origin and connection settings. Takes over the idle connections.
    func successor(for plan: UpstreamPlan) -> any StreamSource
}

/// The streams of one upstream on one worker: idle ones, and new ones by its settings.
final class UpstreamStreams: StreamSource {
    private let plan: UpstreamPlan
    private let runtime: ClientRuntime
    /// `timeouts.idle` for the loop.
    private let idleDelay: LoopDelay
    /// False if the upstream is spoken to in HTTP/1.1 only.
    private let mayBeHTTP2: Bool
    /// The libcurl streams whose connections are not bound to a user.
    private let common: TransferPool
    /// The idle HTTP/1.1 connections that are not bound to a user.
    private let idleStreams: IdleStreams<HTTP1Stream>
    private var bound = BoundPools()
    /// Takes no connection: each is closed after its request.
    private let unshared = IdleStreams<HTTP1Stream>(limit: 0)

    /// Creates streams according to `plan`. `idleStreams`: those of the previous source, which are taken over.
    init(plan: UpstreamPlan, runtime: ClientRuntime, idleStreams: IdleStreams<HTTP1Stream>? = nil) {
        self.plan = plan
        self.runtime = runtime
        idleDelay = LoopDelay(plan.timeouts.idle)
        mayBeHTTP2 = plan.connections.mayBeHTTP2(to: plan.base.origin)
        common = plan.transfers(of: runtime.driver, ownsDriver: false, on: runtime)
        self.idleStreams = idleStreams ?? plan.idleStreams(on: runtime)
    }

    // Streams and pools retain each other.
    deinit {
        common.end()
        bound.end()
    }

    func successor(for plan: UpstreamPlan) -> any StreamSource {
        UpstreamStreams(plan: plan, runtime: runtime, idleStreams: idleStreams)
    }

    func endOutdated(by gate: SharedAttemptGate, now: Int64) { bound.endOutdated(by: gate, now: now) }

    func closeBound() { bound.end() }

    func close() {
        idleStreams.close()
        closeBound()
    }

    func stream(
        for request: ExchangeRequest, on connections: ConnectionUse, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream {
        // An upgrade request has its own connection, which ends with it.
        if request.isUpgrade { return try makeHTTP1Stream(returningTo: unshared, isUpgrade: true) }
        switch connections {
        case .common:
            if !mayBeHTTP2 {
                if let idle = idleStreams.take(for: request, on: runtime.loop) { return idle }
                return try makeHTTP1Stream(returningTo: idleStreams)
            }
            if let idle = common.take() { return idle }
            return try makeCurlStream(in: common)
        case .bound(let group):
            let pool = bound.pool(of: group, by: runtime.gate, now: runtime.wallClock) {
                BoundPool(idleStreams: plan.idleStreams(on: runtime))
            }
            guard let pool else { return try makeSingleStream(sessions.connection) }
            return try stream(for: request, in: pool, sessions.connection)
        case .single, .own:
            return try makeSingleStream(nil)
        }
    }

    func stream(
        for request: ExchangeRequest, returningTo handshake: IdleStreams<HTTP1Stream>
    ) throws(CurlError) -> any UpstreamStream {
        // Over HTTP/2 there are no such handshakes.
        if plan.connections.version == .http2 { return try makeSingleStream(nil) }
        if let idle = handshake.take(for: request, on: runtime.loop) { return idle }
        return try makeHTTP1Stream(returningTo: handshake, isBound: true)
    }

    private func stream(
        for request: ExchangeRequest, in pool: BoundPool, _ credential: ConnectionCredential?
    ) throws(CurlError) -> any UpstreamStream {
        if !mayBeHTTP2, credential == nil {
            if let idle = pool.idleStreams.take(for: request, on: runtime.loop) { return idle }
            return try makeHTTP1Stream(returningTo: pool.idleStreams, isBound: true)
        }
        let transfers = try pool.transfers { () throws(CurlError) in
            plan.transfers(of: try runtime.makeDriver(), ownsDriver: true, on: runtime)
        }
        if credential == nil, let idle = transfers.take() { return idle }
        return try makeCurlStream(in: transfers, credential)
    }

    /// Returns a stream whose connection is new, and ends with its request.
    private func makeSingleStream(_ credential: ConnectionCredential?) throws(CurlError) -> any UpstreamStream {
        if !mayBeHTTP2, credential == nil { return try makeHTTP1Stream(returningTo: unshared) }
        let stream = try makeCurlStream(by: try runtime.unsharedDriver(), in: nil, credential)
        try stream.easy.useOnce()
        return stream
    }

    private func makeHTTP1Stream(
        returningTo idleStreams: IdleStreams<HTTP1Stream>, isBound: Bool = false, isUpgrade: Bool = false
    ) throws(CurlError) -> HTTP1Stream {
        let easy = try EasyHandle()
        try prepare(easy)
        // ALPN must not choose HTTP/2, which has no upgrades.
        try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        try easy.connectOnly()
        let proxy = plan.connections.proxy ?? ""
        let connection = UpstreamConnection(
            easy: easy, driver: try runtime.connections(), loop: runtime.loop, idleDelay: idleDelay,
            isSecure: plan.base.origin.scheme == .https || proxy.lowercased().hasPrefix("https"))
        return HTTP1Stream(
            driver: runtime.driver, easy: easy, connection: connection, idleStreams: idleStreams, isBound: isBound,
            isProxied: plan.connections.proxy != nil, isUpgrade: isUpgrade)
    }

    private func makeCurlStream(
        in pool: TransferPool, _ credential: ConnectionCredential? = nil
    ) throws(CurlError) -> CurlStream {
        let stream = try makeCurlStream(by: pool.driver, in: pool, credential)
        pool.add()
        return stream
    }

    /// Returns a new stream; with `credential`, its connection is authenticated by that, over HTTP/1.1.
    private func makeCurlStream(
        by driver: CurlDriver, in pool: TransferPool?, _ credential: ConnectionCredential?
    ) throws(CurlError) -> CurlStream {
        let mayBeHTTP2 = mayBeHTTP2 && credential == nil
        let stream = try CurlStream(
            driver: driver, pool: pool, mayBeHTTP2: mayBeHTTP2, isOverTLS: plan.base.origin.scheme == .https,
            isProxied: plan.connections.proxy != nil,
            versions: VersionSwitch(plan.connections, mayBeHTTP2: mayBeHTTP2))
        try prepare(stream.easy)
        if let credential { try stream.authenticateConnection(by: credential) }
        return stream
    }

    /// Applies all connection settings.
    private func prepare(_ easy: EasyHandle) throws(CurlError) {
        try easy.setAddress(plan.base.origin.description + "/")
        try easy.set(.connectTimeout, plan.timeouts.connect)
        try plan.connections.apply(to: easy, for: plan.base.origin)
    }
}

extension UpstreamPlan {
    /// Returns a new, empty pool of libcurl streams.
    fileprivate func transfers(of driver: CurlDriver, ownsDriver: Bool, on runtime: ClientRuntime) -> TransferPool {
        let mayShare = connections.mayBeHTTP2(to: base.origin) && connections.sharesConnections(to: base.origin)
        return TransferPool(
            driver: driver, ownsDriver: ownsDriver,
            startQueue: mayShare ? HTTP2StartQueue(loop: runtime.loop, driver: driver) : nil)
    }

    /// Returns a new, empty pool of HTTP/1.1 connections.
    fileprivate func idleStreams(on runtime: ClientRuntime) -> IdleStreams<HTTP1Stream> {
        IdleStreams(limit: connections.mayBeHTTP2(to: base.origin) ? 0 : runtime.connectionLimit)
    }
}

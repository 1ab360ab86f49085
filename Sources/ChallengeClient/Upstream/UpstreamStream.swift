// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
internal import EventLoop
internal import HTTPWire

/// The owner of a transfer: an exchange, or a side request. Called on the loop's thread.
///
/// Never called from within libcurl, except for `supplyBody`, `mayResend` and `carriesEndedSession`, which libcurl needs at once.
package protocol TransferOwner: AnyObject {
    /// Reports interim responses, available from `transfer.takeInterims`.
    func transferHasInterims(_ transfer: Transfer)
    /// Reports the final head: raw in `transfer.head`, parsed in `transfer.answer`.
    func transferHasHead(_ transfer: Transfer)
    /// Reports bytes in `transfer.body`. Those left there count against the transfer's window.
    func transferHasBody(_ transfer: Transfer)
    /// Reports a complete answer while the request's body is still being sent.
    func transferHasAll(_ transfer: Transfer)
    /// Reports that some of the request's body was taken. There may be room for more.
    func transferTookBody(_ transfer: Transfer)
    /// Reports the end, after all other events. `nil` for a complete answer.
    func transferEnded(_ transfer: Transfer, error: CurlError?)
    /// Supplies the request's body, as much as fits.
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply
    /// Returns true if the request may be sent again after a reused connection was dead.
    func mayResend() -> Bool
    /// Returns true if a session of the request has ended since its fields were written.
    func carriesEndedSession() -> Bool
}

extension TransferOwner {
    /// Returns false: no session.
    package func carriesEndedSession() -> Bool { false }
}

/// A channel to an upstream for one request after the other, with or without libcurl.
///
/// The course of a request is recorded in its `transfer`, which notifies the owner in the loop's turn.
protocol UpstreamStream: AnyObject {
    /// The request under way, and its answer.
    var transfer: Transfer { get }
    /// True if the wait of the body for 100 has expired.
    var hasWaited: Bool { get }
    /// True if some of the request may have left this machine.
    var hasSent: Bool { get }

    /// Sends a request. `head` holds all fields except the body's framing. The owner is not called from within.
    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError)
    /// Resumes sending after more of the request's body has come.
    func resumeSending()
    /// Resumes receiving after there is room for more of the answer's body.
    func resumeReceiving()
    /// Appends a trailer before the body's end is reported. Throws for a field that could be read as two.
    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError)
    /// Called before the owner is notified.
    func willNotify()
    /// Called after the owner was notified, if the answer may still be on its way.
    func didNotify()
    /// Returns the details of a failed request.
    func failure(_ error: CurlError) -> TransferFailure
    /// Returns the connection after a 101, with the bytes after the head, or `nil`. The caller has to close it.
    func takeConnection() -> UpstreamConnection?
    /// Releases the request in any state: another may be sent, or the connection is closed.
    func release()
}

extension UpstreamStream {
    func willNotify() {}
    func didNotify() {}
    func takeConnection() -> UpstreamConnection? { nil }
}

/// The source of the streams that carry requests to one upstream.
protocol StreamSource: AnyObject {
    /// Returns a stream for `request` on a connection of `group`; throws if libcurl is out of memory.
    ///
    /// `sessions`: the fields that the request carries.
    func stream(
        for request: ExchangeRequest, at group: ConnectionGroup, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream
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
    /// True if the upstream is spoken to in HTTP/1.1 only.
    private let speaksHTTP1: Bool
    /// The streams whose connections are not bound to a user.
    private let common: TransferPool
    private var bound: [ConnectionGroup: TransferPool] = [:]

    /// Creates streams according to `plan`. `idleStreams`: those of the previous source, which are taken over.
    init(plan: UpstreamPlan, runtime: ClientRuntime, idleStreams: IdleStreams<HTTP1Stream>? = nil) {
        self.plan = plan
        self.runtime = runtime
        idleDelay = LoopDelay(plan.timeouts.idle)
        speaksHTTP1 = !plan.connections.mayBeHTTP2(to: plan.base.origin)
        common = plan.pool(of: runtime.driver, on: runtime, idleStreams: idleStreams)
    }

    func successor(for plan: UpstreamPlan) -> any StreamSource {
        UpstreamStreams(plan: plan, runtime: runtime, idleStreams: common.idleStreams)
    }

    func closeBound() {
        for pool in bound.values { pool.idleStreams.close() }
    }

    func close() {
        common.idleStreams.close()
        closeBound()
    }

    func stream(
        for request: ExchangeRequest, at group: ConnectionGroup, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream {
        let pool = group.isCommon ? common : try pool(of: group)
        // An upgrade request has its own connection, which ends with it.
        if request.isUpgrade { return try makeHTTP1Stream(in: pool, isUpgrade: true) }
        if let credential = sessions.connection, !request.keepsCredentials, !request.omitsConnectionCredential {
            let stream = try makeCurlStream(in: pool, mayBeHTTP2: false)
            try stream.authenticateConnection(by: credential)
            return stream
        }
        if speaksHTTP1 {
            if let idle = pool.idleStreams.take(for: request, on: runtime.loop) { return idle }
            return try makeHTTP1Stream(in: pool)
        }
        if let idle = pool.take() { return idle }
        return try makeCurlStream(in: pool, mayBeHTTP2: plan.connections.mayBeHTTP2(to: plan.base.origin))
    }

    private func makeHTTP1Stream(in pool: TransferPool, isUpgrade: Bool = false) throws(CurlError) -> HTTP1Stream {
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
            driver: pool.driver, easy: easy, connection: connection, idleStreams: pool.idleStreams,
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

    /// Applies all connection settings.
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
    /// Returns a new, empty pool.
    fileprivate func pool(
        of driver: CurlDriver, on runtime: ClientRuntime, idleStreams: IdleStreams<HTTP1Stream>? = nil
    ) -> TransferPool {
        let mayShare = connections.mayBeHTTP2(to: base.origin) && connections.sharesConnections(to: base.origin)
        return TransferPool(
            driver: driver, startQueue: mayShare ? HTTP2StartQueue(loop: runtime.loop, driver: driver) : nil,
            idleStreams: idleStreams
                ?? IdleStreams(limit: connections.mayBeHTTP2(to: base.origin) ? 0 : runtime.connectionLimit))
    }
}

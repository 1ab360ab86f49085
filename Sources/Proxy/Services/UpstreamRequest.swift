// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPWire

/// The present request of a caller's connection on its way upstream: exchange, terms, measurements.
///
/// Used by each owner of an exchange: `Forwarding`, `AuthRequests`, `SPOPConnection`.
struct UpstreamRequest {
    /// The reply to a request without an exchange, and the upstream's name, if there is one.
    struct Refusal: Error {
        var reply: LocalReply
        var upstream: String?
    }

    let caller: AcceptedCaller
    let worker: Worker
    /// The exchange, made for the first request that goes upstream.
    private(set) var exchange: Exchange?
    /// The upstream of the present request.
    private(set) var upstream: UpstreamClient?
    /// The number of path bytes that the route has stripped.
    private(set) var stripped = 0
    /// The terms of forwarding.
    private(set) var terms = ForwardedRequest.Terms()
    /// True if the present request counts among the worker's exchanges.
    private(set) var isAdmitted = false
    /// The measurements of the present exchange.
    var tally = ExchangeTally()

    init(caller: AcceptedCaller, worker: Worker) {
        self.caller = caller
        self.worker = worker
        terms.socket = caller.descriptor
    }

    /// The exchange, while it is that of the present request.
    var running: Exchange? { isAdmitted ? exchange : nil }

    // MARK: Beginning

    /// Admits the request among the exchanges.
    mutating func admit(
        _ request: RequestHead, in bytes: Span<UInt8>, to destination: Router.Destination
    ) throws(Refusal) {
        guard let named = worker.client(named: destination.upstream) else {
            throw Refusal(
                reply: LocalReply(.noRoute, detail: "Upstream \(destination.upstream) no longer exists."))
        }
        let client = try own(named)
        try setTerms(for: request, in: bytes, of: client)
        try checkReadings(of: request, in: bytes, to: destination, of: client)
        try mapAddresses(of: request, in: bytes, to: client)
        guard worker.admitExchange() else {
            throw Refusal(
                reply: LocalReply(
                    .overloaded,
                    detail: "As many exchanges run as `limits.exchanges` allows. Try again shortly, or raise it.",
                    retryAfter: 1), upstream: client.plan.name)
        }
        isAdmitted = true
        tally.begin(at: worker.loop.now)
        stripped = destination.stripped
    }

    /// Prepares the exchange of an admitted request. The owner calls `exchange.start` and then `tally.handedOver`.
    mutating func begin(
        _ outbound: ExchangeRequest, _ request: RequestHead, in bytes: Span<UInt8>, for owner: any ExchangeCaller
    ) {
        guard let upstream else { return }
        let exchange = exchange ?? Exchange(runtime: worker.runtime, caller: owner)
        self.exchange = exchange
        let path = request.target.pathAndQuery
        if request.method == .options, path.isEmpty {
            // For the server as a whole: the asterisk, or an address without path and query (RFC 9112 §3.2.4).
            exchange.begin(outbound, path: "*".utf8.span, to: upstream)
        } else {
            let start = min(path.start + stripped, path.end)
            exchange.begin(outbound, path: bytes.extracting(start..<path.end), to: upstream)
        }
    }

    /// Returns the upstream's client for this caller.
    @inline(__always)
    private func own(_ client: UpstreamClient) throws(Refusal) -> UpstreamClient {
        guard client.dependsOnCaller else { return client }
        if let identity = caller.identity { return client.client(for: identity) }
        // A caller who may have credentials by user, for example one who has closed its socket, must not use the common
        // ones.
        if caller.isStranger { return client.client(for: nil) }
        throw Refusal(
            reply: LocalReply(
                .callerNotAllowed,
                detail:
                    "\(Admission.stranger) Challenges of upstream \(client.plan.name) have credentials by user."
            ))
    }

    /// Refuses a path whose readings by servers lead to different challenges.
    private func checkReadings(
        of request: RequestHead, in bytes: Span<UInt8>, to destination: Router.Destination, of client: UpstreamClient
    ) throws(Refusal) {
        guard !client.plan.logins.isUniform else { return }
        let path = request.target.path
        let start = min(path.start + destination.stripped, path.end)
        guard ChallengesByPath.agree(on: bytes.extracting(start..<path.end), at: client.plan) else {
            throw Refusal(reply: .ambiguousPath, upstream: client.plan.name)
        }
    }

    /// Replaces the local addresses in a WebDAV request.
    @inline(__always)
    private mutating func mapAddresses(
        of request: RequestHead, in bytes: Span<UInt8>, to client: UpstreamClient
    ) throws(Refusal) {
        if !terms.mappedLines.isEmpty { terms.mappedLines = [] }
        guard ForwardMapping.concerns(request.method), ForwardMapping.isNeeded(for: request, in: bytes) else { return }
        do throws(ForwardMapping.OtherRoute) {
            terms.mappedLines = try ForwardMapping(of: request, in: bytes, from: caller, to: client.plan)
                .lines(of: request, in: bytes)
        } catch {
            throw Refusal(reply: .otherRoute, upstream: client.plan.name)
        }
    }

    /// Returns the length of the data in an `aws-chunked` body; `nil` for other bodies.
    func chunkedDataLength(of request: RequestHead, in bytes: Span<UInt8>) -> UInt64? {
        guard let upstream, upstream.plan.decodesChunks, !request.body.isEmpty else { return nil }
        for index in request.fields.indices where request.fields[index].kind == .other {
            let line = request.fields[index]
            let (name, value) = (bytes.extracting(line.name.bounds), bytes.extracting(line.value.bounds))
            if let length = AWSChunkFields.length(name, value) { return length }
        }
        return nil
    }

    /// Records that the chunks of the body are taken off.
    mutating func takeOffChunks() { terms.decodesChunks = true }

    /// Sets the terms of forwarding for the request.
    @inline(__always)
    private mutating func setTerms(
        for request: RequestHead, in bytes: Span<UInt8>, of client: UpstreamClient
    ) throws(Refusal) {
        upstream = client
        let policy = client.forwarding
        terms.policy = policy
        terms.keepsCredentials = false
        terms.ownAuthorization = .none
        terms.decodesChunks = false
        terms.tokenField = caller.listener.tokens?.field
        // The caller's token is for this proxy, so the request has no credentials for the upstream.
        if terms.tokenField?.isBearer == true { return }
        switch policy.callerCredentials {
        case .replace:
            terms.ownAuthorization = Self.ownAuthorization(of: request, in: bytes)
        case .keep:
            terms.ownAuthorization = Self.ownAuthorization(of: request, in: bytes)
            terms.keepsCredentials = terms.ownAuthorization != .none
        case .refuse:
            guard request.first(.authorization) == nil else {
                throw Refusal(
                    reply: LocalReply(
                        .callerNotAllowed,
                        detail: """
                            Callers bring no credentials of their own to upstream \(client.plan.name) \
                            (`caller-credentials: refuse`). Leave Authorization out.
                            """), upstream: client.plan.name)
            }
        }
    }

    /// Returns the effect of the forwarded lines with `Authorization`.
    private static func ownAuthorization(of request: RequestHead, in bytes: Span<UInt8>) -> OwnAuthorization {
        var own = OwnAuthorization.none
        for index in request.fields.indices where request.fields[index].kind == .authorization {
            let line = request.fields[index]
            if line.isHopByHop || own == .connection { continue }
            own = OwnAuthorization(bytes.extracting(line.value.bounds))
        }
        return own
    }

    // MARK: Replies

    /// Counts and logs a local reply to the present request, and returns it with the identifier. `upstream` is the intended
    /// upstream if no exchange began.
    mutating func recorded(_ reply: LocalReply, of upstream: String?, id: ExchangeID) -> LocalReply {
        tally.isLocal = true
        let meant = isAdmitted ? self.upstream?.plan.name : upstream
        worker.meter.replied(reply, upstream: meant ?? "")
        worker.log.replied(reply, listener: caller.listener.name, isRefusal: !isAdmitted, id: id)
        return reply.identified(by: id)
    }

    /// The identifier of the present request; a new one if no exchange began.
    var id: ExchangeID { running?.id ?? worker.runtime.nextID() }

    /// Logs a missing or incomplete response. Returns the reply for the caller.
    func failed(_ error: ExchangeError) -> LocalReply {
        let upstream = exchange?.upstreamName ?? ""
        worker.log.failed(error, upstream: upstream, rounds: exchange?.rounds ?? 0, id: exchange?.id)
        return LocalReply(error, upstream: upstream, now: worker.wallClock())
    }

    // MARK: Ends

    /// Ends the measurements of the present exchange.
    mutating func endTally() {
        guard let upstream else { return }
        tally.end(in: worker.loop, to: upstream.meter)
    }

    /// Ends the request, which no longer counts among the exchanges.
    mutating func release() {
        guard isAdmitted else { return }
        endTally()
        worker.exchangeEnded()
        isAdmitted = false
    }

    /// Releases the exchange. With `isTunnel`, it still counts, as a tunnel.
    mutating func close(isTunnel: Bool = false) {
        exchange?.close()
        exchange = nil
        if isTunnel { isAdmitted = false } else { release() }
    }
}

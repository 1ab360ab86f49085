// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

/// One request and its outcome, for an access log.
package struct AccessRecord: Sendable, Equatable {
    /// The time of its end, in milliseconds since 1970.
    package var time: Int64 = 0
    /// The listener's name.
    package var listener = ""
    /// The caller's address without its port; `nil` over a Unix socket.
    package var caller: String?
    /// The caller's uid, if the kernel reports it.
    package var user: UInt32?
    /// The name of the credential whose token the request has, if the listener knows callers by tokens.
    package var name: String?
    /// The method; empty if the head could not be read.
    package var method = ""
    /// The path as the caller wrote it, without its query.
    package var path = ""
    /// The query, if the log wants queries and the request has one.
    package var query: String?
    /// The requested host, with its port.
    package var host = ""
    /// The version of HTTP: `1.1`.
    package var version = ""
    /// The status of the response; 499 if the caller left before the response.
    package var status = 0
    /// The number of body bytes sent or queued.
    package var bytes = 0
    /// True if the response was not completed.
    package var isAborted = false
    /// The code of a local reply; `nil` for a response of the upstream.
    package var code: String?
    /// The upstream, if the request got that far.
    package var upstream: String?
    /// The duration of the whole exchange, in nanoseconds.
    package var duration: UInt64 = 0
    /// The time that transfers to the upstream ran, in nanoseconds; `nil` without any.
    package var upstreamDuration: UInt64?
    /// The identifier of the exchange.
    package var exchangeID = ""
    /// The challenge whose login the request waited for, if any.
    package var challenge: String?
    /// The caller's `Referer` without a query.
    package var referer: String?
    /// The caller's `User-Agent`.
    package var userAgent: String?

    /// Makes an empty record.
    package init() {}
}

/// The destination of access records. Called on a worker's thread; must not block.
package protocol AccessRecorder: Sendable {
    /// True if records are to include the query.
    var wantsQuery: Bool { get }
    /// Writes one record.
    func write(_ record: AccessRecord)
}

/// Collects the access record of the present request. Without an interested log there is no builder.
final class AccessRecordBuilder {
    let begun: LoopInstant
    /// True if the head could be read, so that the connection has it.
    let hasHead: Bool
    var status = 0
    var bytes = 0
    var code: LocalReply.Code?
    var id: ExchangeID?
    var upstream: String?
    /// True if the response was completed.
    var isWhole = false

    private init(begun: LoopInstant, hasHead: Bool) {
        self.begun = begun
        self.hasHead = hasHead
    }

    /// Begins the record of a request of `caller`; `nil` if no log wants it. `hasHead`: the head could be read.
    @inline(__always)
    static func begin(_ caller: AcceptedCaller, on worker: Worker, hasHead: Bool) -> AccessRecordBuilder? {
        guard worker.hasAccessLog, !caller.listener.isLocal else { return nil }
        return AccessRecordBuilder(begun: worker.loop.now, hasHead: hasHead)
    }

    /// Records that a local reply answers the request.
    func take(_ reply: LocalReply, id: ExchangeID, upstream: String?) {
        code = reply.code
        self.id = id
        self.upstream = upstream
    }

    /// Writes the record while the head still exists: `describe` lends it. `exchange` is that of the request.
    func write(
        for caller: AcceptedCaller, on worker: Worker, exchange: Exchange?,
        describe: (_ describe: (RequestHead, Span<UInt8>) -> Void) -> Void
    ) {
        guard let log = worker.accessLog else { return }
        var record = AccessRecord()
        record.time = worker.wallClock()
        record.listener = caller.listener.name
        switch SocketName.peer(of: caller.descriptor) {
        case .ipv4(let host, _), .ipv6(let host, _): record.caller = host
        case .nameless: break
        }
        record.user = caller.callerUser
        // If a head cannot be read, no token is known.
        if hasHead, case .token(let name)? = caller.named { record.name = name }
        record.status = status == 0 ? 499 : status
        record.bytes = bytes
        record.isAborted = !isWhole
        record.code = code?.rawValue
        record.upstream = upstream
        record.duration = worker.loop.readNow().nanoseconds(since: begun)
        if let exchange {
            record.upstream = exchange.upstreamName
            record.upstreamDuration = exchange.upstreamTime > 0 ? exchange.upstreamTime : nil
            record.challenge = exchange.awaitedLogin
            id = exchange.id
        }
        record.exchangeID = (id ?? worker.runtime.nextID()).description
        if hasHead { describe { record.take($0, in: $1, wantsQuery: log.wantsQuery) } }
        log.write(record)
    }
}

extension AccessRecord {
    fileprivate mutating func take(_ request: RequestHead, in bytes: Span<UInt8>, wantsQuery: Bool) {
        method = bytes.text(request.methodRange)
        version = request.version == .http11 ? "1.1" : "1.0"
        host = request.authority.map { bytes.text($0) } ?? ""
        path = bytes.text(request.target.path)
        if wantsQuery {
            let whole = bytes.text(request.target.pathAndQuery)
            query =
                whole.utf8.count > path.utf8.count ? String(whole.utf8.dropFirst(path.utf8.count + 1)) : nil
        }
        for line in request.fields {
            if line.kind == .referer, referer == nil {
                referer = String(bytes.text(line.value).prefix { $0 != "?" && $0 != "#" })
            } else if userAgent == nil, bytes.matches(line.name, ignoringCase: "user-agent") {
                userAgent = bytes.text(line.value)
            }
        }
    }
}

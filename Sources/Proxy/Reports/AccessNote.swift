// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

/// The notes on the present request for the access log. There is none where nobody wants one.
final class AccessNote {
    let begun: LoopInstant
    /// True if the head could be read, so that the connection has it.
    let hasHead: Bool
    var status = 0
    var bytes = 0
    var code: LocalReply.Code?
    var id: ExchangeID?
    var upstream: String?
    /// True if the response is as it should be.
    var isWhole = false

    private init(begun: LoopInstant, hasHead: Bool) {
        self.begun = begun
        self.hasHead = hasHead
    }

    /// The note of a request of `caller`, whose head was read, or could not be; `nil` where no log wants it.
    @inline(__always)
    static func begin(_ caller: AcceptedCaller, on worker: Worker, hasHead: Bool) -> AccessNote? {
        guard worker.hasAccessLog, !caller.listener.isLocal else { return nil }
        return AccessNote(begun: worker.loop.now, hasHead: hasHead)
    }

    /// A local reply answers the request.
    func take(_ reply: LocalReply, id: ExchangeID, upstream: String?) {
        code = reply.code
        self.id = id
        self.upstream = upstream
    }

    /// Writes the record, while the head is still there: `describe` lends it. `exchange`: that of the request.
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

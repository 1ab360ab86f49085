// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

/// What is noted of the present request for the access log. There is none where nobody wants one.
final class AccessNote {
    let begun: LoopInstant
    /// Whether the head could be read, so that the connection's parser has it.
    let hasHead: Bool
    var status = 0
    var bytes = 0
    var code: LocalReply.Code?
    var id: ExchangeID?
    var upstream: String?
    /// Whether the response is as it should be.
    var isWhole = false

    init(begun: LoopInstant, hasHead: Bool) {
        self.begun = begun
        self.hasHead = hasHead
    }
}

// The access log. Each of these is one look at a reference where there is none.
extension DownstreamConnection {
    /// A request's head was read, or could not be.
    func beginAccess(hasHead: Bool) {
        guard worker.accessLog != nil, accessNote == nil, !listener.isLocal else { return }
        accessNote = AccessNote(begun: worker.loop.now, hasHead: hasHead)
    }

    /// The request is over: writes the record, while the head is still there.
    func endAccess() {
        guard let note = accessNote else { return }
        accessNote = nil
        guard let log = worker.accessLog else { return }
        var record = AccessRecord()
        record.time = worker.wallClock()
        record.listener = listener.name
        switch SocketName.peer(of: descriptor) {
        case .ipv4(let host, _), .ipv6(let host, _): record.caller = host
        case .nameless: break
        }
        record.user = callerUser
        record.status = note.status == 0 ? 499 : note.status
        record.bytes = note.bytes
        record.isAborted = !note.isWhole
        record.code = note.code?.rawValue
        record.upstream = note.upstream
        record.duration = worker.loop.readNow().nanoseconds(since: note.begun)
        if isAdmitted, let exchange {
            record.upstream = exchange.upstreamName
            record.upstreamDuration = exchange.upstreamTime > 0 ? exchange.upstreamTime : nil
            record.challenge = exchange.awaitedLogin
            note.id = exchange.id
        }
        record.exchangeID = (note.id ?? worker.runtime.nextID()).description
        if note.hasHead { describe(parser.head, in: &record, wantsQuery: log.wantsQuery) }
        log.write(record)
    }

    private func describe(_ request: RequestHead, in record: inout AccessRecord, wantsQuery: Bool) {
        head.withSpan { bytes in
            let request = listener.isAuthority ? (try? requestInQuestion(in: bytes)) ?? request : request
            record.method = bytes.text(request.methodRange)
            record.version = request.version == .http11 ? "1.1" : "1.0"
            record.host = request.authority.map { bytes.text($0) } ?? ""
            record.path = bytes.text(request.target.path)
            if wantsQuery {
                let whole = bytes.text(request.target.pathAndQuery)
                record.query =
                    whole.utf8.count > record.path.utf8.count
                    ? String(whole.utf8.dropFirst(record.path.utf8.count + 1)) : nil
            }
            for line in request.fields {
                if line.kind == .referer, record.referer == nil {
                    record.referer = String(bytes.text(line.value).prefix { $0 != "?" && $0 != "#" })
                } else if record.userAgent == nil, bytes.matches(line.name, ignoringCase: "user-agent") {
                    record.userAgent = bytes.text(line.value)
                }
            }
        }
    }
}

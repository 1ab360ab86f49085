// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Answers the requests of a connection to the admin listener. They are not exchanges and are not counted.
final class LocalAnswers: Service {
    /// A strong reference, because each use of a weak or unowned one costs time. The connection releases its service when it
    /// closes.
    private let connection: any ServedConnection
    private let service: any LocalService
    private let log: ExchangeLog
    private let nextID: () -> ExchangeID

    init(
        _ connection: any ServedConnection, by service: any LocalService, log: ExchangeLog,
        nextID: @escaping () -> ExchangeID
    ) {
        self.connection = connection
        self.service = service
        self.log = log
        self.nextID = nextID
    }

    func begin() {
        let caller = connection.caller
        let refusal = connection.withRequest {
            Admission.refusal(ofLocal: $0, in: $1, plan: caller.listener, isUnixSocket: caller.isUnixSocket)
        }
        if let refusal { return refuse(refusal) }
        let parsed = connection.withRequest { LocalRequest($0, in: $1, isUnixSocket: caller.isUnixSocket) }
        if let later = service.later(parsed) {
            connection.deliver(later)
        } else {
            connection.deliver(service.answer(parsed))
        }
    }

    func refuse(_ reply: LocalReply) {
        let id = nextID()
        log.replied(reply, listener: connection.caller.listener.name, isRefusal: false, id: id)
        let local = reply.identified(by: id)
        connection.deliver(local.answer(allow: local.status == 405 ? Admission.methods : nil))
    }
}

extension LocalRequest {
    fileprivate init(_ request: RequestHead, in bytes: Span<UInt8>, isUnixSocket: Bool) {
        let path = bytes.text(request.target.path)
        let whole = bytes.text(request.target.pathAndQuery)
        self.init(
            method: bytes.text(request.methodRange), path: path, query: String(whole.dropFirst(path.count + 1)),
            isUnixSocket: isUnixSocket,
            accept: request.fields.filter { $0.kind == .accept }.map { bytes.text($0.value) }.joined(separator: ","))
    }
}

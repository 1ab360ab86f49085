// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Answers auth requests: another proxy asks whether a request of its caller may pass, and with which fields.
final class AuthRequests: Service {
    /// Strong, as a weak or unowned reference costs every use of its object; the connection lets go of its service when it closes.
    private let connection: any ServedConnection
    private let worker: Worker
    private var run: UpstreamRequest

    init(_ connection: any ServedConnection, worker: Worker) {
        self.connection = connection
        self.worker = worker
        run = UpstreamRequest(caller: connection.caller, worker: worker)
    }

    var exchange: Exchange? { run.running }

    func begin() {
        guard prepare() else { return }
        run.exchange?.start()
        run.tally.handedOver(by: worker.loop)
    }

    /// Makes the exchange ready; `false`: the request was answered. Apart from the start, as in `Forwarding`.
    private func prepare() -> Bool {
        let caller = connection.caller
        let refusal: UpstreamRequest.Refusal? = connection.withRequest { question, bytes in
            if let refusal = Admission.refusal(ofQuestion: question, in: bytes, by: caller) {
                return UpstreamRequest.Refusal(reply: refusal)
            }
            let original: RequestHead
            do throws(SubrequestFault) {
                original = try question.original(in: bytes)
            } catch {
                return UpstreamRequest.Refusal(reply: LocalReply(error, listener: caller.listener.name))
            }
            do throws(UpstreamRequest.Refusal) {
                try run.admit(subrequest: original, in: bytes)
                run.begin(subrequest: original, in: bytes, for: self)
                return nil
            } catch {
                return error
            }
        }
        if let refusal {
            refuse(refusal.reply, of: refusal.upstream)
            return false
        }
        connection.accept()
        return true
    }

    func refuse(_ reply: LocalReply) { refuse(reply, of: nil) }

    private func refuse(_ reply: LocalReply, of upstream: String?) {
        let id = run.id
        let local = run.noted(reply, of: upstream, id: id).denial
        connection.noteAccess(reply, id: id, upstream: upstream)
        var answer = local.answer()
        answer.fields += local.denialFields
        connection.deliver(answer)
    }

    func loggedRequest(_ request: RequestHead, in bytes: Span<UInt8>) -> RequestHead {
        (try? request.original(in: bytes)) ?? request
    }

    var wantsBody: Bool { run.exchange?.wantsBody ?? false }

    func receiveBody(_ bytes: Span<UInt8>) { run.exchange?.receiveBody(bytes) }

    func receiveBodyEnd() { run.exchange?.receiveBodyEnd() }

    func cancel(isAnswered: Bool) {
        run.exchange?.cancel()
        if isAnswered { run.tally.isWhole = true }
    }

    func requestEnded() { run.release() }

    func close() { run.close() }
}

extension AuthRequests: SubrequestCaller {
    var callerUser: UInt32? { connection.caller.callerUser }

    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        connection.withRequest { question, bytes in
            run.writeFields(of: question, in: bytes, into: fields, overriddenBy: sessions, cookies: cookies)
        }
    }

    /// Writes the answer; its body is empty.
    func exchangeAuthorizes(_ answer: SubrequestAnswer) {
        run.tally.status = 200
        connection.accessNote?.status = 200
        let (version, cookies) = connection.withRequest { request, bytes in
            (request.version, answer.cookies.flatMap { $0.field(with: request, in: bytes) })
        }
        // A body is not read.
        let keepsAlive = connection.writesWholeResponse()
        let writer = SubrequestResponse(
            browsers: connection.caller.listener.browsers, policy: run.terms.policy, version: version,
            keepsAlive: keepsAlive)
        connection.write { writer.write(answer, cookies: cookies, date: worker.date(), to: &$0) }
        connection.responseIsWhole()
    }

    func exchangeWantsBody() { connection.bodyIsWanted() }

    func exchangeEnded() {
        run.tally.isWhole = true
        connection.requestEnded(isBroken: false)
    }

    func exchangeFailed(_ error: ExchangeError) { refuse(run.failed(error)) }

    func exchangeBroke(_ error: ExchangeError) {
        run.tally.isBroken = true
        _ = run.failed(error)
        connection.endAfterRequest()
        connection.requestEnded(isBroken: true)
    }
}

/// The caller of an exchange that is about fields only: nothing of a response of the upstream is passed on.
protocol SubrequestCaller: ExchangeCaller {}

extension SubrequestCaller {
    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {}
    func exchangeDelivers(headOf transfer: Transfer) {}
    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        throw WireError(upstream: .switchInvalid)
    }
    func exchangeDelivers(bodyOf transfer: Transfer) {}
    func exchangeDelivers(trailersOf transfer: Transfer) {}
    func exchangeHasAll() {}
}

// The common part of auth requests over HTTP and over SPOP.
extension UpstreamRequest {
    /// Lets the request in question in among the exchanges.
    mutating func admit(subrequest original: RequestHead, in bytes: Span<UInt8>) throws(Refusal) {
        switch Admission.decide(
            original, in: bytes, plan: caller.listener, user: caller.user, isUnixSocket: caller.isUnixSocket)
        {
        case .refused(let refusal): throw Refusal(reply: refusal)
        // Whoever sends it to the upstream answers for `Max-Forwards`, too.
        case .answered: throw Refusal(reply: .unanswerable)
        case .admitted(let destination): try admit(original, in: bytes, to: destination)
        }
    }

    /// Makes the exchange of the request in question ready.
    mutating func begin(
        subrequest original: RequestHead, in bytes: Span<UInt8>, for owner: any ExchangeCaller
    ) {
        let outbound = ExchangeRequest(
            method: original.method,
            otherMethod: original.method == .other ? bytes.text(original.methodRange) : "", framing: original.body,
            expectsContinue: original.expectsContinue && original.first(.expect)?.isNominated == false,
            keepsCredentials: terms.keepsCredentials, isUpgrade: false, isSubrequest: true)
        begin(outbound, original, in: bytes, for: owner)
    }

    /// Writes the fields with which the request in question would go upstream.
    func writeFields(
        of request: RequestHead, in bytes: Span<UInt8>, into fields: FieldSink,
        overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        guard let upstream else { return }
        ForwardedRequest.write(
            request, in: bytes, authority: upstream.authority, terms: terms, overriddenBy: sessions,
            cookies: cookies, to: fields)
    }
}

extension RequestCookies {
    /// All cookies that are to go upstream, as one field: the caller's, less those that the sessions have of the same names, and theirs.
    /// Empty: none of the caller's may go, and there is none to take their place; `nil`: there is none at all.
    func field(with request: RequestHead, in bytes: Span<UInt8>) -> [UInt8]? {
        let lines =
            request.fields.filter { $0.kind == .cookie && !$0.isNominated }.map { bytes.copy($0.value) }
        return merged(with: lines) ?? (lines.isEmpty ? nil : [])
    }
}

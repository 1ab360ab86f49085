// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Answers auth requests: another proxy asks if a request of its caller may pass, and with what fields.
final class AuthRequests: Service {
    /// A strong reference, because each use of a weak or unowned one costs time. The connection releases its service when it
    /// closes.
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

    /// Prepares the exchange, and returns false if the request was answered. Separate from the start, as in `Forwarding`.
    private func prepare() -> Bool {
        let caller = connection.caller
        let refusal: UpstreamRequest.Refusal? = connection.withRequest { question, bytes in
            if let refusal = Admission.refusal(ofQuestion: question, in: bytes, by: caller) {
                return UpstreamRequest.Refusal(reply: refusal)
            }
            let original: RequestHead
            do throws(AuthRequestFault) {
                original = try question.original(in: bytes)
            } catch {
                return UpstreamRequest.Refusal(reply: LocalReply(error, listener: caller.listener.name))
            }
            do throws(UpstreamRequest.Refusal) {
                try run.admit(authRequest: original, in: bytes)
                run.begin(authRequest: original, in: bytes, for: self)
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
        let local = run.recorded(reply, of: upstream, id: id).denial
        connection.recordAccess(reply, id: id, upstream: upstream)
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

extension AuthRequests: AuthRequestCaller {
    var identity: CallerIdentity? { connection.caller.identity }

    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        connection.withRequest { question, bytes in
            run.writeFields(of: question, in: bytes, into: fields, overriddenBy: sessions, cookies: cookies)
        }
    }

    /// Writes the answer, which has an empty body.
    func exchangeAuthorizes(_ answer: AuthRequestAnswer) {
        run.tally.status = 200
        connection.accessBuilder?.status = 200
        let (version, cookies) = connection.withRequest { request, bytes in
            (request.version, answer.cookies.flatMap { $0.field(with: request, in: bytes) })
        }
        // A body is not read.
        let keepsAlive = connection.writesWholeResponse()
        let writer = AuthRequestResponse(
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

/// The caller of an exchange that needs only fields. No response of the upstream is passed on.
protocol AuthRequestCaller: ExchangeCaller {}

extension AuthRequestCaller {
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
    /// Admits the request in question among the exchanges.
    mutating func admit(authRequest original: RequestHead, in bytes: Span<UInt8>) throws(Refusal) {
        switch Admission.decide(
            original, in: bytes, plan: caller.listener, user: caller.user, isUnixSocket: caller.isUnixSocket)
        {
        case .refused(let refusal): throw Refusal(reply: refusal)
        // The proxy that sends the request to the upstream is responsible for `Max-Forwards`.
        case .answered: throw Refusal(reply: .unanswerable)
        case .admitted(let destination): try admit(original, in: bytes, to: destination)
        }
    }

    /// Prepares the exchange of the request in question.
    mutating func begin(
        authRequest original: RequestHead, in bytes: Span<UInt8>, for owner: any ExchangeCaller
    ) {
        let outbound = ExchangeRequest(
            method: original.method,
            otherMethod: original.method == .other ? bytes.text(original.methodRange) : "", framing: original.body,
            expectsContinue: original.expectsContinue && original.first(.expect)?.isNominated == false,
            keepsCredentials: terms.keepsCredentials, isUpgrade: false, isAuthRequest: true)
        begin(outbound, original, in: bytes, for: owner)
    }

    /// Writes the fields that the request in question would have when forwarded upstream.
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
    /// Returns all cookies for the upstream as one field: those of the sessions, and the caller's other ones. The
    /// result is empty if the caller's cookies must be removed and none replace them, and `nil` if there are no cookies
    /// at all.
    func field(with request: RequestHead, in bytes: Span<UInt8>) -> [UInt8]? {
        let lines =
            request.fields.filter { $0.kind == .cookie && !$0.isNominated }.map { bytes.copy($0.value) }
        return merged(with: lines) ?? (lines.isEmpty ? nil : [])
    }
}

/// Writes the answer to an auth request over HTTP: the fields for the request in question.
struct AuthRequestResponse {
    /// The longest lifetime of an answer, in seconds. After an upstream ends a session early, the other proxy has to hand back
    /// each request until its cached answer expires.
    private static let longestLifetime: Int64 = 10

    let browsers: BrowserRule
    let policy: ForwardingPolicy
    let version: HTTPVersion
    let keepsAlive: Bool

    /// Writes the answer with an empty body. `cookies` is the result of `RequestCookies.field`.
    func write(_ answer: AuthRequestAnswer, cookies: [UInt8]?, date: String, to output: inout ByteQueue) {
        ResponseWriter.statusLine(200, to: &output)
        ResponseWriter.field("Date", date.utf8.span, to: &output)
        var hasAuthorization = false
        answer.forEachField { name, value in
            let whole = ByteRange(start: 0, end: name.count)
            if name.matches(whole, ignoringCase: "authorization") { hasAuthorization = true }
            ResponseWriter.field(name, value, to: &output)
        }
        if let cookies {
            if cookies.isEmpty {
                ResponseWriter.field("X-Envoy-Auth-Headers-To-Remove", "cookie", to: &output)
            } else {
                ResponseWriter.field("Cookie", cookies.span, to: &output)
            }
        }
        writeKept(authorization: !hasAuthorization, cookies: answer.cookies == nil, to: &output)
        if answer.lifetime > 0 {
            writeVary(hasCookies: answer.cookies != nil, to: &output)
            output.append("Cache-Control: max-age=")
            output.append(decimal: UInt64(min(answer.lifetime, Self.longestLifetime)))
            output.append("\r\n")
        } else {
            ResponseWriter.field("Cache-Control", "no-store", to: &output)
        }
        ResponseWriter.contentLength(0, to: &output)
        ResponseWriter.connection(keepsAlive: keepsAlive, to: version, in: &output)
        ResponseWriter.endOfHead(to: &output)
    }

    /// Writes the names of the caller's own fields that may be forwarded. nginx decides by this short text: its `map`
    /// would copy and hash a whole token for each request.
    private func writeKept(authorization: Bool, cookies: Bool, to output: inout ByteQueue) {
        switch (authorization, cookies) {
        case (true, true): ResponseWriter.field("Countersign-Keep", "Authorization, Cookie", to: &output)
        case (true, false): ResponseWriter.field("Countersign-Keep", "Authorization", to: &output)
        case (false, true): ResponseWriter.field("Countersign-Keep", "Cookie", to: &output)
        case (false, false): break
        }
    }

    /// Writes the caller's fields that the answer depends on (RFC 9110 §12.5.5). Method, host and target are in the
    /// cache's key.
    private func writeVary(hasCookies: Bool, to output: inout ByteQueue) {
        var separator: StaticString = "Vary: "
        func add(_ name: StaticString) {
            output.append(separator)
            output.append(name)
            separator = ", "
        }
        if policy.callerCredentials != .replace { add("Authorization") }
        if hasCookies { add("Cookie") }
        if browsers != .allow { add("Origin, Sec-Fetch-Mode, Sec-Fetch-Site") }
        if policy.callerCredentials != .replace || hasCookies || browsers != .allow {
            output.append("\r\n")
        }
    }
}

extension LocalReply {
    /// Makes the reply to an auth request that does not identify a request.
    init(_ fault: AuthRequestFault, listener: String) {
        let said =
            switch fault {
            case .elsewhere:
                "An auth-request listener serves /authority, and /authority followed by the path of the request."
            case .fieldsIncomplete:
                "/authority needs X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host, each once."
            case .fieldInvalid:
                "X-Forwarded-Method is not a method, X-Forwarded-Uri is not a path with its query, or X-Forwarded-Host is not a host."
            }
        self.init(
            .badRequest,
            detail: "\(said) Fix the configuration of the proxy that uses listener \(listener); see the examples.")
    }

    /// The reply to a request that an ordinary listener would answer by itself.
    static let unanswerable = LocalReply(
        .badRequest, detail: "The request ends here, because its Max-Forwards is 0 (RFC 9110 §7.6.2).")

    /// Returns the reply with status 403, which other proxies understand as a denial. nginx denies with 401 and 403,
    /// and Envoy with any status below 500. Any other status counts as an error of the auth-request listener and hides
    /// the reason; 401 would make nginx ask elsewhere.
    var denial: LocalReply {
        LocalReply(self, status: 403)
    }

    /// The fields that nginx can pass to the caller, who never sees the document.
    var denialFields: [(name: String, value: String)] {
        [
            ("Countersign-Code", code.rawValue),
            ("Countersign-Detail", visibleDetail),
        ]
    }

    /// The detail with only visible ASCII characters, for a field value.
    var visibleDetail: String { String(decoding: detail.utf8.map(Self.visible), as: UTF8.self) }

    private static func visible(_ byte: UInt8) -> UInt8 {
        (0x20...0x7E).contains(byte) ? byte : UInt8(ascii: "?")
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
package import ChallengeHandling
internal import FoundationEssentials
package import HTTPWire

/// A response made by the proxy: a problem document (RFC 9457) with cause and remedy.
package struct LocalReply: Sendable, Equatable {
    /// The kind of problem; the raw value is the document's `code`.
    package enum Code: String, Sendable, CaseIterable {
        case accountLocked = "account-locked"
        case attemptsKept = "attempts-kept"
        case badRequest = "bad-request"
        case bodyNotReplayable = "body-not-replayable"
        case callerNotAllowed = "caller-not-allowed"
        case callerNotKnown = "caller-not-known"
        case draining
        case hostNotAllowed = "host-not-allowed"
        case loginFailed = "login-failed"
        case loginLatched = "login-latched"
        case loginRejected = "login-rejected"
        case loginTimeout = "login-timeout"
        case methodNotAllowed = "method-not-allowed"
        case noCredential = "no-credential"
        case noRoute = "no-route"
        case overloaded
        case upstreamProtocol = "upstream-protocol"
        case upstreamTLS = "upstream-tls"
        case upstreamTimeout = "upstream-timeout"
        case upstreamUnreachable = "upstream-unreachable"
    }

    /// The kind of problem.
    package let code: Code
    /// The status code.
    package let status: Int
    /// The problem here and its remedy, in one or two sentences.
    package let detail: String
    /// Seconds after which a retry may succeed (`Retry-After`, RFC 9110 §10.2.3).
    package let retryAfter: Int64?
    /// The value of `WWW-Authenticate`, for a 401.
    let authenticate: String?
    /// Further members of the document.
    package private(set) var members: [String: String]
    /// The identifier of the request, which is also in the log.
    private var exchangeID: String?
    /// The error type of RFC 9209 §2.3, if it is known more exactly than by the code.
    package let proxyError: String?

    /// Makes a reply with the status of its code, unless `status` is given (`bad-request` has several).
    package init(
        _ code: Code, status: Int? = nil, detail: String, retryAfter: Int64? = nil, members: [String: String] = [:],
        proxyError: String? = nil, authenticate: String? = nil
    ) {
        self.proxyError = proxyError
        self.authenticate = authenticate
        self.code = code
        self.status = status ?? code.status
        self.detail = detail
        self.retryAfter = retryAfter
        self.members = members
    }

    /// Makes the same reply with another status.
    init(_ other: LocalReply, status: Int) {
        self.init(
            other.code, status: status, detail: other.detail, retryAfter: other.retryAfter, members: other.members,
            proxyError: other.proxyError ?? (other.status == 508 ? "proxy_loop_detected" : nil))
        exchangeID = other.exchangeID
    }

    /// Returns the reply with the identifier of its request.
    func identified(by id: ExchangeID) -> LocalReply {
        var reply = self
        reply.exchangeID = "\(id)"
        reply.members["exchange_id"] = reply.exchangeID
        return reply
    }

    /// The problem document. Its type is a URN, because a relative type would depend on the address.
    package var document: [UInt8] {
        var object = members
        object["code"] = code.rawValue
        object["detail"] = detail
        object["title"] = code.title
        object["type"] = "urn:countersign:problem:\(code.rawValue)"
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let strings = (try? encoder.encode(object)).map { Array($0) } ?? Array("{}".utf8)
        // `status` is a number among strings.
        return Array("{\"status\":\(status),".utf8) + strings.dropFirst() + [UInt8(ascii: "\n")]
    }

    /// Returns the reply in the form of a local service. `allow` lists the methods that the resource takes, which a 405 must name
    /// (RFC 9110 §15.5.6).
    package func answer(allow: String? = nil) -> LocalAnswer {
        var fields = [("Proxy-Status", proxyStatus)]
        if status == 401, let authenticate { fields.append(("WWW-Authenticate", authenticate)) }
        if let retryAfter { fields.append(("Retry-After", "\(retryAfter)")) }
        if let allow { fields.append(("Allow", allow)) }
        return LocalAnswer(status: status, contentType: "application/problem+json", body: document, fields: fields)
    }

    /// The value of `Proxy-Status` (RFC 9209 §2), with an error type of its registry (§2.3).
    package var proxyStatus: String {
        let error = proxyError ?? (status == 508 ? "proxy_loop_detected" : code.proxyError)
        // A response to HEAD has no document, so the identifier is here as well.
        let id = exchangeID.map { "; exchange_id=\"\($0)\"" } ?? ""
        return "countersign; error=\(error); details=\"\(code.rawValue)\"\(id)"
    }
}

extension LocalAnswer {
    /// Writes the whole answer. With `isHead`, to a HEAD request, without its body.
    func write(
        isHead: Bool, version: HTTPVersion, date: String, keepsAlive: Bool, to output: inout ByteQueue
    ) {
        ResponseWriter.statusLine(status, to: &output)
        ResponseWriter.field("Date", date, to: &output)
        if !contentType.isEmpty { ResponseWriter.field("Content-Type", contentType, to: &output) }
        ResponseWriter.contentLength(UInt64(body.count), to: &output)
        ResponseWriter.field("Cache-Control", "no-store", to: &output)
        for field in fields { ResponseWriter.field(field.name, field.value, to: &output) }
        ResponseWriter.connection(keepsAlive: keepsAlive, to: version, in: &output)
        ResponseWriter.endOfHead(to: &output)
        if !isHead { output.append(body) }
    }
}

extension LocalReply.Code {
    /// The status that belongs to the code.
    package var status: Int {
        switch self {
        case .badRequest: 400
        case .callerNotAllowed: 403
        case .callerNotKnown: 401
        case .noRoute: 404
        case .methodNotAllowed: 405
        case .bodyNotReplayable: 413
        case .hostNotAllowed: 421
        case .loginFailed, .loginRejected, .noCredential, .upstreamProtocol, .upstreamTLS, .upstreamUnreachable: 502
        case .accountLocked, .attemptsKept, .draining, .loginLatched, .overloaded: 503
        case .loginTimeout, .upstreamTimeout: 504
        }
    }

    /// A short summary that does not vary between occurrences (RFC 9457 §3.1.3).
    package var title: String {
        switch self {
        case .accountLocked: "The upstream has locked the account"
        case .attemptsKept: "The last login attempts are kept"
        case .badRequest: "The request cannot be served as it is"
        case .bodyNotReplayable: "The body is too long to be sent again"
        case .callerNotAllowed: "This caller is not allowed"
        case .callerNotKnown: "This caller is not known"
        case .draining: "The proxy is shutting down"
        case .hostNotAllowed: "This host name is not served here"
        case .loginFailed: "The login could not be carried out"
        case .loginLatched: "The credential was rejected before and is not sent again"
        case .loginRejected: "The upstream rejected the credential"
        case .loginTimeout: "The login took too long"
        case .methodNotAllowed: "This method is not served here"
        case .noCredential: "The credential is missing"
        case .noRoute: "No route matches this request"
        case .overloaded: "Too many requests at once"
        case .upstreamProtocol: "The upstream's answer is not valid HTTP"
        case .upstreamTLS: "The TLS handshake with the upstream failed"
        case .upstreamTimeout: "The upstream did not answer in time"
        case .upstreamUnreachable: "The upstream cannot be reached"
        }
    }

    /// The nearest error type of RFC 9209 §2.3.
    fileprivate var proxyError: String {
        switch self {
        case .badRequest, .bodyNotReplayable, .methodNotAllowed: "http_request_error"
        case .callerNotAllowed, .callerNotKnown, .hostNotAllowed: "http_request_denied"
        case .noRoute: "destination_not_found"
        case .upstreamProtocol: "http_protocol_error"
        case .upstreamTLS: "tls_protocol_error"
        case .upstreamTimeout: "http_response_timeout"
        case .upstreamUnreachable: "destination_unavailable"
        case .overloaded, .draining: "connection_limit_reached"
        case .accountLocked, .attemptsKept, .loginFailed, .loginLatched, .loginRejected, .loginTimeout, .noCredential:
            "proxy_configuration_error"
        }
    }
}

// The only place that maps errors to replies.
extension LocalReply {
    /// Makes the reply for an exchange that got no response. `now` is in milliseconds since 1970.
    package init(_ error: ExchangeError, upstream: String, now: Int64) {
        var members = ["upstream": upstream]
        var retryAfter: Int64?
        let code: Code
        switch error.kind {
        case .bodyNotReplayable: code = .bodyNotReplayable
        case .callerGone: code = .badRequest
        case .callerNotAllowed: code = .callerNotAllowed
        case .login(let failure):
            members["challenge"] = failure.challenge
            // Rounded up, so that a caller that obeys does not come too early.
            retryAfter = failure.retryAt.map { max(1, $0.saturatingSubtract(now).saturatingAdd(999) / 1000) }
            self.init(
                Code(failure), detail: failure.detail, retryAfter: retryAfter, members: members)
            return
        case .loginTimeout: code = .loginTimeout
        case .overloaded:
            code = .overloaded
            retryAfter = 1
        case .requestUnfit: code = .badRequest
        case .upstreamProtocol: code = .upstreamProtocol
        case .upstreamTLS: code = .upstreamTLS
        case .upstreamTimeout: code = .upstreamTimeout
        case .upstreamUnreachable: code = .upstreamUnreachable
        }
        self.init(code, detail: error.detail, retryAfter: retryAfter, members: members, proxyError: error.proxyError)
    }

    /// Makes the reply for a request that breaks a rule of HTTP.
    package init(_ error: WireError) {
        self.init(
            .badRequest, status: error.status,
            detail: "\(error.detail) Fix the program that sent the request.")
    }
}

extension LocalReply {
    /// The reply to an exchange that was cut off by the end of the drain.
    static let cutOffByDrain = LocalReply(
        .draining,
        detail:
            "The daemon is stopping, and this exchange did not finish in time. The request may have "
            + "reached the upstream: send it again if that does no harm, once the daemon serves again.",
        retryAfter: 1)
}

extension LocalReply.Code {
    /// Returns the code for a failed login.
    package init(_ failure: LoginFailure) {
        switch failure.code {
        case .accountLocked: self = .accountLocked
        case .attemptsKept: self = .attemptsKept
        case .bodyTooLong: self = .bodyNotReplayable
        case .failed: self = .loginFailed
        case .latched: self = .loginLatched
        case .noCredential: self = .noCredential
        case .rejected: self = .loginRejected
        case .timedOut: self = .loginTimeout
        case .unsignable: self = .badRequest
        case .upstreamTLS: self = .upstreamTLS
        }
    }
}

extension LocalReply {
    /// The whole response to a caller who is turned away before the request is read. It has no `Date`, which a 5xx may lack (RFC
    /// 9110 §6.6.1), so it can be prepared in advance.
    var closingReply: [UInt8] { closingReply(answersAuthRequests: false) }

    /// Returns the whole response; for a listener that answers auth requests, in their form.
    func closingReply(answersAuthRequests: Bool) -> [UInt8] {
        var answer = answersAuthRequests ? denial.answer() : answer()
        if answersAuthRequests { answer.fields += denialFields }
        var queue = ByteQueue()
        ResponseWriter.statusLine(answer.status, to: &queue)
        ResponseWriter.field("Content-Type", answer.contentType, to: &queue)
        ResponseWriter.contentLength(UInt64(answer.body.count), to: &queue)
        ResponseWriter.field("Cache-Control", "no-store", to: &queue)
        for field in answer.fields { ResponseWriter.field(field.name, field.value, to: &queue) }
        ResponseWriter.connection(keepsAlive: false, to: .http11, in: &queue)
        ResponseWriter.endOfHead(to: &queue)
        queue.append(answer.body)
        return queue.withSpan { $0.array }
    }

    /// Returns the reply to a caller who is admitted to nothing at `listener`.
    static func notAdmitted(user: UInt32?, by listener: ListenerPlan) -> LocalReply {
        let scope = listener.users == nil ? "of any route of" : "of"
        return LocalReply(
            .callerNotAllowed,
            detail: user == nil
                ? "\(Admission.stranger) Listener \(listener.name) has `users`."
                : "The caller's user is not under `users` \(scope) listener \(listener.name). Add the user there, or call as one of the users listed."
        )
    }
}

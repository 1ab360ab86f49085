// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import FoundationEssentials
internal import HTTPWire

/// A response that we made: a problem document (RFC 9457) that says what happened and what to do.
package struct LocalReply: Sendable, Equatable {
    /// What happened; the raw value is the document's `code`.
    package enum Code: String, Sendable, CaseIterable {
        case accountLocked = "account-locked"
        case attemptsKept = "attempts-kept"
        case badRequest = "bad-request"
        case bodyNotReplayable = "body-not-replayable"
        case callerNotAllowed = "caller-not-allowed"
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

    /// What happened.
    package let code: Code
    /// The status code.
    package let status: Int
    /// What happened here and what to do, in one or two sentences.
    package let detail: String
    /// Seconds after which another try makes sense (`Retry-After`, RFC 9110 §10.2.3).
    package let retryAfter: Int64?
    /// Further members of the document.
    package private(set) var members: [String: String]
    /// Names the request in the log, too.
    private var exchangeID: String?
    /// The error type of RFC 9209 §2.3, where it is known better than by the code.
    package let proxyError: String?

    /// A reply with the status of its code, unless another is given (a request refused by its grammar has several).
    package init(
        _ code: Code, status: Int? = nil, detail: String, retryAfter: Int64? = nil, members: [String: String] = [:],
        proxyError: String? = nil
    ) {
        self.proxyError = proxyError
        self.code = code
        self.status = status ?? code.status
        self.detail = detail
        self.retryAfter = retryAfter
        self.members = members
    }

    /// The same reply with another status.
    init(_ other: LocalReply, status: Int) {
        self.init(
            other.code, status: status, detail: other.detail, retryAfter: other.retryAfter, members: other.members,
            proxyError: other.proxyError ?? (other.status == 508 ? "proxy_loop_detected" : nil))
        exchangeID = other.exchangeID
    }

    /// The same reply, naming the request that it answers.
    func identified(by id: ExchangeID) -> LocalReply {
        var reply = self
        reply.exchangeID = "\(id)"
        reply.members["exchange_id"] = reply.exchangeID
        return reply
    }

    /// The document. A relative type would mean something else at every address, hence a URN.
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

    /// The reply as a local service answers. `allow`: the methods that the resource takes, which a 405 must name
    /// (RFC 9110 §15.5.6).
    package func answer(allow: String? = nil) -> LocalAnswer {
        var fields = [("Proxy-Status", proxyStatus)]
        if let retryAfter { fields.append(("Retry-After", "\(retryAfter)")) }
        if let allow { fields.append(("Allow", allow)) }
        return LocalAnswer(status: status, contentType: "application/problem+json", body: document, fields: fields)
    }

    /// The value of `Proxy-Status` (RFC 9209 §2), with an error type of its registry (§2.3).
    package var proxyStatus: String {
        let error = proxyError ?? (status == 508 ? "proxy_loop_detected" : code.proxyError)
        // For HEAD, whose answer has no document.
        let id = exchangeID.map { "; exchange_id=\"\($0)\"" } ?? ""
        return "countersign; error=\(error); details=\"\(code.rawValue)\"\(id)"
    }
}

extension LocalAnswer {
    /// Writes the answer, whole. `isHead`: to a HEAD request, hence without its body.
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
    /// The status that goes with it.
    package var status: Int {
        switch self {
        case .badRequest: 400
        case .callerNotAllowed: 403
        case .noRoute: 404
        case .methodNotAllowed: 405
        case .bodyNotReplayable: 413
        case .hostNotAllowed: 421
        case .loginFailed, .loginRejected, .noCredential, .upstreamProtocol, .upstreamTLS, .upstreamUnreachable: 502
        case .accountLocked, .attemptsKept, .draining, .loginLatched, .overloaded: 503
        case .loginTimeout, .upstreamTimeout: 504
        }
    }

    /// A short summary that stays the same from occurrence to occurrence (RFC 9457 §3.1.3).
    package var title: String {
        switch self {
        case .accountLocked: "The upstream has locked the account"
        case .attemptsKept: "The last login attempts are kept"
        case .badRequest: "The request cannot be served as it is"
        case .bodyNotReplayable: "The body is too long to be sent again"
        case .callerNotAllowed: "This caller is not allowed"
        case .draining: "The proxy is shutting down"
        case .hostNotAllowed: "This host name is not served here"
        case .loginFailed: "The login could not be carried out"
        case .loginLatched: "The credential was rejected before and is not sent again"
        case .loginRejected: "The upstream rejected the credential"
        case .loginTimeout: "The login took too long"
        case .methodNotAllowed: "This method is not served here"
        case .noCredential: "The credential is missing"
        case .noRoute: "No route takes this request"
        case .overloaded: "Too many requests at once"
        case .upstreamProtocol: "The upstream's answer is not valid HTTP"
        case .upstreamTLS: "The TLS handshake with the upstream failed"
        case .upstreamTimeout: "The upstream did not answer in time"
        case .upstreamUnreachable: "The upstream cannot be reached"
        }
    }

    /// The error type of RFC 9209 §2.3 that comes nearest.
    fileprivate var proxyError: String {
        switch self {
        case .badRequest, .bodyNotReplayable, .methodNotAllowed: "http_request_error"
        case .callerNotAllowed, .hostNotAllowed: "http_request_denied"
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

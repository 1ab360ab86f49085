// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire
internal import Secrets

/// One side request on its way: a libcurl transfer whose whole answer is collected, up to a limit.
final class SideTransfer: TransferOwner {
    /// The largest accepted answer, in bytes.
    static let bodyLimit = 1024 * 1024

    private let driver: CurlDriver
    private let stream: CurlStream
    private let transfer: Transfer
    private let request: SideRequest
    private let login: String
    private let plan: UpstreamPlan
    private let connections: ConnectionSettings
    /// True if the connection carries nothing before and after the request.
    private let isAlone: Bool
    private let finish: (Result<SideResponse, SideRequestError>) -> Void
    private var sent = 0
    private var response: SideResponse?
    /// The body so far, which may hold a token: growing overwrites the old memory.
    private var collected = SecretBuilder(capacity: 4096)
    /// A reference to itself while the transfer runs.
    private var own: SideTransfer?

    /// Sends `request` of the login named `login` and calls `finish` once, on the loop's thread, not from within.
    ///
    /// A server may bind the connection of a login's request to its user, and take the next request there for that
    /// user's. The login knows, not the request, whose token is a field like any other. Each request of such a login has
    /// a new connection, also one without a token, which asks what others get.
    static func start(
        _ request: SideRequest, of login: String, plan: UpstreamPlan, on runtime: ClientRuntime,
        finish: @escaping (Result<SideResponse, SideRequestError>) -> Void
    ) {
        let connections = plan.connections(to: request.url.origin, of: login)
        let isAlone = request.connection != nil || plan.logins.all.contains { $0.name == login && $0.bindsConnections }
        do throws(CurlError) {
            let driver = isAlone ? try runtime.unsharedDriver() : runtime.driver
            let stream = try CurlStream(
                driver: driver,
                mayBeHTTP2: request.connection == nil && connections.mayBeHTTP2(to: request.url.origin),
                isOverTLS: request.url.origin.scheme == .https, isProxied: connections.proxy != nil)
            let side = SideTransfer(
                stream, request, of: login, plan: plan, connections: connections, driver: driver, isAlone: isAlone,
                finish: finish)
            try side.prepare()
            try driver.start(stream)
            // Only now, as the two retain each other from here to `end`.
            stream.transfer.owner = side
            side.own = side
        } catch {
            finish(.failure(SideRequestError(.unreachable, reason: error.description, isUnsent: true)))
        }
    }

    private init(
        _ stream: CurlStream, _ request: SideRequest, of login: String, plan: UpstreamPlan,
        connections: ConnectionSettings, driver: CurlDriver, isAlone: Bool,
        finish: @escaping (Result<SideResponse, SideRequestError>) -> Void
    ) {
        self.isAlone = isAlone
        self.stream = stream
        transfer = stream.transfer
        self.request = request
        self.login = login
        self.plan = plan
        self.connections = connections
        self.driver = driver
        self.finish = finish
    }

    private func prepare() throws(CurlError) {
        let easy = stream.easy
        try connections.apply(to: easy, for: request.url.origin)
        try easy.set(.url, request.url.origin.description + "/")
        try easy.setTarget(request.url.target)
        try easy.set(.connectTimeout, min(plan.timeouts.connect, request.timeout))
        try easy.set(.timeout, request.timeout)
        if let body = request.body {
            try easy.set(.upload, true)
            try easy.set(.bodySize, Int64(body.count))
        }
        transfer.isHeadRequest = request.method == .head
        if transfer.isHeadRequest {
            try easy.set(.noBody, true)
            // Some servers send a body (WsgiDAV), which would stand before the next answer on the connection.
            try easy.set(.forbidReuse, true)
        }
        if request.method != .get || request.body != nil { try easy.setMethod(request.method.rawValue) }
        if request.body == nil, request.method == .post {
            try stream.fields.append(name: "Content-Length", value: "0")
        }
        if isAlone { try easy.useOnce() }
        if let credential = request.connection { try stream.authenticateConnection(by: credential) }
        if request.needsNewConnection { try easy.set(.freshConnect, true) }
        stream.fields.suppress("Expect")
        // The body should come unencoded (RFC 9110 §12.5.3); `complete` handles servers that compress nevertheless.
        if !request.fields.contains(.acceptEncoding) {
            try stream.fields.append(name: "Accept-Encoding", value: "identity")
        }
        // Firewalls refuse requests without one, and some servers bind a session to it (RFC 9110 §10.1.5).
        if !request.fields.contains(.userAgent) {
            try stream.fields.append(name: "User-Agent", value: plan.userAgent(of: login))
        }
        try request.fields.forEachLine { (name, value) throws(CurlError) in
            try stream.fields.append(name: name.rawName.utf8.span, value: value.span)
        }
    }

    func transferHasInterims(_ transfer: Transfer) { transfer.takeInterims { _, _ in } }

    func transferHasHead(_ transfer: Transfer) {
        let head = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0) }
        let response = SideResponse(status: head.status, fields: head.fields)
        self.response = response
        // An event stream would never end, and a file is long.
        if request.allowsPartialBody, !Self.isText(head.fields[.contentType]) { end(.success(response)) }
    }

    /// Returns true if a media type is finite text, such as a page or a record.
    private static func isText(_ type: String?) -> Bool {
        let type = (type ?? "").prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        return type.hasPrefix("text/") && type != "text/event-stream" || type.hasSuffix("json") || type.hasSuffix("xml")
    }

    func transferHasBody(_ transfer: Transfer) {
        transfer.body.withSpan { collected.append($0) }
        transfer.body.removeAll()
        if collected.count > Self.bodyLimit {
            if request.allowsPartialBody, let response { return complete(response) }
            end(.failure(Self.tooLong))
        }
    }

    /// Ends with an answer that came before the whole request was sent.
    func transferHasAll(_ transfer: Transfer) { transferEnded(transfer, error: nil) }

    func transferTookBody(_ transfer: Transfer) {}

    func transferEnded(_ transfer: Transfer, error: CurlError?) {
        if let fault = transfer.fault {
            end(
                .failure(
                    SideRequestError(.badAnswer, reason: "\(request.url.origin) sent invalid HTTP: \(fault.detail)")))
        } else if let error {
            end(.failure(SideRequestError(stream.failure(error), origin: request.url.origin)))
        } else if let response {
            complete(response)
        } else {
            end(.failure(SideRequestError(.badAnswer, reason: "\(request.url.origin) sent no answer")))
        }
    }

    private static let tooLong = SideRequestError(.badAnswer, reason: "the answer is longer than 1 MiB")

    /// Ends with `response` and the decoded body so far, at most 1 MiB; a longer body fails unless a truncated one is
    /// enough.
    ///
    /// A body with an unknown coding is left out; `Content-Encoding` stays then.
    private func complete(_ response: SideResponse) {
        var response = response
        let body = takeBody()
        let codings = response.fields[values: .contentEncoding]
        guard !codings.isEmpty, !body.isEmpty else {
            response.body = Array(body.prefix(Self.bodyLimit))
            return end(.success(response))
        }
        response.body = ContentCoding.undone(body, codings, limit: Self.bodyLimit + 1)
        if response.body.count > Self.bodyLimit {
            guard request.allowsPartialBody else { return end(.failure(Self.tooLong)) }
            response.body.removeLast(response.body.count - Self.bodyLimit)
        }
        if !response.body.isEmpty { response.fields[.contentEncoding] = nil }
        end(.success(response))
    }

    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        guard let body = request.body else { return .end }
        let count = body.withBytes { bytes in
            let count = min(buffer.count, bytes.count - sent)
            unsafe bytes.extracting(sent..<sent + count).withUnsafeBytes { unsafe buffer.copyMemory(from: $0) }
            return count
        }
        sent += count
        return count > 0 ? .bytes(count) : .end
    }

    /// A login is not resent by itself: the server may have counted the first attempt.
    func mayResend() -> Bool { request.method == .get && sent == 0 && request.fields[.authorization] == nil }

    private func takeBody() -> [UInt8] {
        var builder = SecretBuilder(capacity: 1)
        swap(&builder, &collected)
        return builder.finish().revealBytes()
    }

    private func end(_ result: Result<SideResponse, SideRequestError>) {
        guard own != nil else { return }
        transfer.owner = nil
        driver.stop(stream)
        transfer.body.wipe(keepingCapacity: 0)
        finish(result)
        own = nil
    }
}

/// The side requests of a conversation, carried by the transport of a worker.
///
/// Secrets are sent only to an origin that the configuration names; redirects are never followed.
package struct LoopSideRequests: SideRequests {
    private let loop: EventLoop
    private let transport: LoopBound<any UpstreamTransport>
    private let plan: UpstreamPlan
    private let login: String

    /// Creates side requests of the login named `login` for the upstream of `plan`, on the loop's thread.
    package init(runtime: ClientRuntime, plan: UpstreamPlan, login: String) {
        self.login = login
        loop = runtime.loop
        transport = LoopBound(runtime.transport, to: runtime.loop)
        self.plan = plan
    }

    /// Sends `request` on the worker's loop. Callable from any executor.
    package func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        guard plan.loginOrigins.contains(request.url.origin) else {
            throw SideRequestError(
                .originNotAllowed,
                reason: "\(request.url.origin) is not an origin in the configuration of upstream \(plan.name)")
        }
        guard plan.connections.mayCarrySecrets(to: request.url.origin) else {
            throw SideRequestError(
                .originNotAllowed,
                reason: "\(request.url.origin) is another machine, and the request would be sent there in the clear")
        }
        let result: Result<SideResponse, SideRequestError> = await withCheckedContinuation { continuation in
            loop.execute {
                transport.value.send(request, of: login, plan: plan) { continuation.resume(returning: $0) }
            }
        }
        return try result.get()
    }
}

extension SideRequestError {
    /// Creates the error for a failed transfer to `origin`.
    init(_ failure: TransferFailure, origin: Origin) {
        let meaning = FailureMeaning(failure)
        let (kind, words): (Kind, String) =
            switch meaning.kind {
            case .protocolError: (.badAnswer, meaning.words)
            case .timedOut: (.timedOut, "did not answer in time")
            case .tls: (.tls, meaning.words)
            case .unreachable: (.unreachable, meaning.words)
            }
        // The limits of a connection that was made are other ones.
        let isLate = meaning.kind == .timedOut && failure.wasConnected
        let remedy = isLate ? "It took the connection: check its load and its log" : meaning.remedy
        let publicReason = remedy.isEmpty ? words : "\(words). \(remedy)"
        self.init(
            kind, reason: "\(origin): \(words) (\(failure.cause))", publicReason: publicReason,
            isUnsent: meaning.isUnsent ? true : nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The decision about a request, from its head alone, before anything goes upstream.
enum Admission {
    /// The destination of an admitted request, a local answer, or the reply that refuses the request.
    enum Verdict {
        case admitted(Router.Destination)
        case answered(LocalAnswer)
        case refused(LocalReply)
    }

    /// Checks and routes a request. `bytes` holds the head. `user` is the caller's uid, if known.
    static func decide(
        _ head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, user: UInt32?, isUnixSocket: Bool = false
    ) -> Verdict {
        if let refusal = refusal(head, in: bytes, plan: plan, user: user, isUnixSocket: isUnixSocket) {
            return .refused(refusal)
        }
        if plan.router.isTrivial, let fallback = plan.router.fallback {
            return admit(head, in: bytes, to: Router.Destination(upstream: fallback))
        }
        let host = head.authority.flatMap { Authority(bytes, $0) }.map { bytes.text($0.host) } ?? ""
        let decision = plan.router.decide(
            host: host, path: bytes.text(head.target.path), method: bytes.text(head.methodRange), user: user)
        switch decision {
        case .found(let destination):
            return admit(head, in: bytes, to: destination)
        case .ambiguous: return .refused(.ambiguousPath)
        case .notAllowed(let route):
            return .refused(
                LocalReply(
                    .callerNotAllowed,
                    detail: user == nil
                        ? "\(stranger) The route for this request has `users`."
                        : """
                        The route for this request, routes[\(route)] of listener \(plan.name), is for other users. Add this \
                        user to its `users`, or call as one of the users listed.
                        """))
        case .none:
            return .refused(
                LocalReply(
                    .noRoute,
                    detail:
                        """
                        No route of listener \(plan.name) matches this host, path and method. Add a route to `routes`, or an \
                        `upstream` for all other requests; `countersign explain` shows how a URL is handled.
                        """))
        }
    }

    /// Checks `Max-Forwards` last: an answer in place of the upstream means that the request would have reached it.
    @inline(__always)
    private static func admit(
        _ head: RequestHead, in bytes: Span<UInt8>, to destination: Router.Destination
    ) -> Verdict {
        guard head.method == .options else { return .admitted(destination) }
        return switch MaxForwards(head, in: bytes) {
        case .unlimited: .admitted(destination)
        case .left(0): .answered(LocalAnswer(status: 200, contentType: "", body: [], fields: [("Allow", methods)]))
        case .left: .admitted(destination)
        case .invalid:
            .refused(LocalReply(.badRequest, detail: "Max-Forwards is not a single number (RFC 9110 §7.6.2)."))
        }
    }

    /// The methods that are served by name; others are forwarded as well.
    static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

    /// The reason why a caller's user is unknown.
    static let stranger =
        "The kernel does not report the user of this caller: the caller is on another machine or in another network "
        + "namespace, or has closed its side of the connection."

    @inline(__always)
    private static func refusal(
        _ head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, user: UInt32?, isUnixSocket: Bool
    ) -> LocalReply? {
        // Callers with HTTP/1.0 may omit Host; they are not browsers. A browser does not reach a Unix socket either, except
        // through another proxy.
        let isHostFree = isUnixSocket && !plan.answersAuthRequests && !plan.router.usesHosts
        if !isHostFree, head.authority != nil,
            !plan.hosts.accepts(host: head.authorityHost(in: bytes) ?? .empty, in: bytes)
        {
            return LocalReply(
                .hostNotAllowed,
                detail: """
                    Only loopback names and those under `hosts` of listener \(plan.name) are served, as a protection \
                    against DNS rebinding. Add the name there if it is yours.
                    """)
        }
        if let users = plan.users, !(user.map(users.contains) ?? false) {
            return LocalReply(
                .callerNotAllowed,
                detail: user == nil
                    ? "\(stranger) Listener \(plan.name) has `users`."
                    : "The caller's user is not under `users` of listener \(plan.name). Add the user there, or call as one of the users listed."
            )
        }
        let signs = AdmissionFields(head, in: bytes)
        if signs.metadata.isRefused(by: plan.browsers, head, in: bytes, isSchemeKnown: !plan.answersAuthRequests) {
            return .crossOrigin(listener: plan.name)
        }
        if isMethodRefused(head, in: bytes) {
            return LocalReply(
                .methodNotAllowed,
                detail: """
                    CONNECT, TRACE, TRACK and DEBUG are not served, however they are spelled (RFC 9110 §9.3.6, §9.3.8). Use \
                    another method.
                    """)
        }
        if signs.passes >= LoopGuard.limit {
            return LocalReply(
                .badRequest, status: 508,
                detail: """
                    According to its Via, the request has come through countersign \(signs.passes) times: an upstream's `url` leads back to \
                    a listener.
                    """)
        }
        if head.method == .head, !head.body.isEmpty {
            return LocalReply(
                .badRequest,
                detail: "A body has no meaning with HEAD, and servers differ in how they treat it (RFC 9110 §9.3.2)."
            )
        }
        if head.expectation == .unknown {
            return LocalReply(
                .badRequest, status: 417,
                detail: "Only `Expect: 100-continue` is supported (RFC 9110 §10.1.1). Leave the field out.")
        }
        return nil
    }

    /// Returns true if the method makes servers repeat a request's own fields, or open a tunnel. Methods are
    /// case-sensitive (RFC 9110 §9.1), but some servers ignore case. TRACK and DEBUG are methods of IIS.
    private static func isMethodRefused(_ head: RequestHead, in bytes: Span<UInt8>) -> Bool {
        switch head.method {
        case .connect, .trace: true
        case .other:
            bytes.matches(head.methodRange, ignoringCase: "trace")
                || bytes.matches(head.methodRange, ignoringCase: "track")
                || bytes.matches(head.methodRange, ignoringCase: "debug")
                || bytes.matches(head.methodRange, ignoringCase: "connect")
        default: false
        }
    }
}

extension LocalReply {
    /// The reply to a path whose readings lead to different routes or challenges.
    static let ambiguousPath = LocalReply(
        .badRequest,
        detail: """
            Servers read this path in different ways (encoded characters, parameters, dot segments, slashes, capital letters), which lead to \
            different routes or challenges. Write it plainly.
            """)

    /// Returns the reply to a request that a browser sent for a page of another origin.
    static func crossOrigin(listener: String) -> LocalReply {
        LocalReply(
            .callerNotAllowed,
            detail: """
                A browser sent this on behalf of a page of another origin. Listener \(listener) serves programs and its own \
                pages; to allow other origins, list them under `browsers`.
                """)
    }
}

/// Facts from a request's fields, collected in one pass.
private struct AdmissionFields {
    /// The fields that a browser sends about the page.
    var metadata = FetchMetadata()
    /// The number of times that the request has come through countersign.
    var passes = 0

    @inline(__always)
    init(_ head: RequestHead, in bytes: Span<UInt8>) {
        for index in head.fields.indices {
            let line = head.fields[index]
            if line.kind == .via { passes += LoopGuard.passes(line.value, in: bytes) } else { metadata.take(line) }
        }
    }
}

// Admission of requests that are not forwarded: to the admin listener, and auth requests.
extension Admission {
    /// Returns the reply that refuses a request to an admin listener, or `nil`. A page of another origin must neither read it nor
    /// make a browser send requests to it.
    static func refusal(
        ofLocal head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, isUnixSocket: Bool
    ) -> LocalReply? {
        if !isUnixSocket, let authority = head.authority, !plan.hosts.accepts(authority, in: bytes) {
            return LocalReply(.hostNotAllowed, detail: "Only loopback names are served here.")
        }
        var metadata = FetchMetadata()
        for line in head.fields { metadata.take(line) }
        guard metadata.isRefused(by: plan.browsers, head, in: bytes) else { return nil }
        return LocalReply(
            .callerNotAllowed,
            detail: "A browser sent this on behalf of a page of another origin. Here only its own pages are served.")
    }

    /// Returns the answer to `OPTIONS *` with `Max-Forwards: 0` (RFC 9110 §7.6.2), for any listener; `nil` for other requests.
    /// `countersign doctor` uses it to find out whether a countersign listens at an address, without a refused request in the
    /// log.
    static func ownAnswer(to request: RequestHead, in bytes: Span<UInt8>, for caller: AcceptedCaller) -> LocalAnswer? {
        guard request.target.form == .asterisk, MaxForwards(request, in: bytes) == .left(0) else { return nil }
        let listener = caller.listener
        guard request.authority.map({ listener.hosts.accepts($0, in: bytes) }) ?? true,
            listener.users.map({ users in caller.user.map { users.contains($0) } ?? false }) ?? true
        else { return nil }
        return LocalAnswer(
            status: 200, contentType: "", body: [], fields: [("Allow", methods), ("Proxy-Status", "countersign")])
    }

    /// Returns the reply that refuses an auth request by its own fields, or `nil`.
    ///
    /// An auth-request listener hands out the session. A page whose name was made to point here (DNS rebinding) could send an
    /// auth request and read the answer. The fields of the request in question do not help, because the page writes them itself.
    static func refusal(
        ofQuestion head: RequestHead, in bytes: Span<UInt8>, by caller: AcceptedCaller
    ) -> LocalReply? {
        if let refusal = refusal(ofAskingBy: caller) { return refusal }
        let plan = caller.listener
        guard !caller.isUnixSocket, let authority = head.authority else { return nil }
        guard plan.hosts.accepts(authority, in: bytes) || isLabel(authority, in: bytes) else {
            return LocalReply(
                .hostNotAllowed,
                detail: """
                    The auth request's own Host is not a loopback name, not under `hosts` of listener \(plan.name), and not a name \
                    without a dot, as a protection against DNS rebinding. Make the other proxy send `Host: localhost`.
                    """)
        }
        return isSentByOwnPage(head, in: bytes) ? .crossOrigin(listener: plan.name) : nil
    }

    /// Returns the reply that refuses any auth request of a caller, or `nil`. HAProxy's frames have no head of their own, so this
    /// is the only check for them.
    static func refusal(ofAskingBy caller: AcceptedCaller) -> LocalReply? {
        let plan = caller.listener
        if plan.tokens != nil {
            guard caller.named == nil else { return nil }
            return LocalReply(
                .callerNotAllowed,
                detail: """
                    Listener \(plan.name) serves callers with a token, and HAProxy's protocol has no field for one. Use a listener \
                    with `users`, or a Unix socket.
                    """)
        }
        guard !caller.isUnixSocket else { return nil }
        guard plan.users != nil else {
            return LocalReply(
                .callerNotAllowed,
                detail: """
                    Listener \(plan.name) is an auth-request listener, which hands out sessions. Over TCP it answers only callers under \
                    its `users`, or with a token of its `callers`.
                    """)
        }
        return nil
    }

    /// Returns true if the host is a name without a dot, as nginx sends that of an `upstream` block.
    private static func isLabel(_ authority: ByteRange, in bytes: Span<UInt8>) -> Bool {
        guard let parsed = Authority(bytes, authority), bytes[parsed.host.start] != UInt8(ascii: "[") else {
            return false
        }
        for index in parsed.host.bounds where bytes[index] == .dot { return false }
        return true
    }

    /// Returns true if a page of the auth-request listener's own address sent the auth request: `Origin` is that of the request's
    /// own target, and the request in question has another host.
    private static func isSentByOwnPage(_ head: RequestHead, in bytes: Span<UInt8>) -> Bool {
        guard let forwarded = head.first(.xForwardedHost), let origin = head.first(.origin),
            FetchMetadata.isOwn(origin.value, of: head, in: bytes, isSchemeKnown: true)
        else { return false }
        return bytes.text(forwarded.value).lowercased() != head.authority.map { bytes.text($0).lowercased() }
    }
}

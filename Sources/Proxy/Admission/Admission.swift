// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Who is let in with what: decided from the request's head alone, before anything goes upstream.
enum Admission {
    /// Where an admitted request goes, the answer to one that may go nowhere, or the reply that refuses it.
    enum Verdict {
        case admitted(Router.Destination)
        case answered(LocalAnswer)
        case refused(LocalReply)
    }

    /// Checks and routes a request. `bytes` holds the head; `user` is the caller's uid where it is known; `isUnixSocket`: the
    /// caller came over one.
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
                        ? "\(stranger) The route that takes this request has `users`."
                        : """
                        The route that takes this request, routes[\(route)] of listener \(plan.name), is for other users. Add this \
                        one to its `users`, or call as one of those.
                        """))
        case .none:
            return .refused(
                LocalReply(
                    .noRoute,
                    detail:
                        """
                        No route of listener \(plan.name) takes this host, path and method. Add one to `routes`, or an \
                        `upstream` for the rest; `countersign explain` shows what a URL meets.
                        """))
        }
    }

    /// Looks at `Max-Forwards` last: whoever answers in the upstream's place is to know that it would have got there.
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
            .refused(LocalReply(.badRequest, detail: "Max-Forwards is not one number (RFC 9110 §7.6.2)."))
        }
    }

    /// The methods that are served by name; others pass as well.
    static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

    /// Why nobody knows who a caller is.
    static let stranger =
        "The kernel does not tell which user this caller is: it calls from another machine or another network "
        + "namespace, or has closed its side."

    @inline(__always)
    private static func refusal(
        _ head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, user: UInt32?, isUnixSocket: Bool
    ) -> LocalReply? {
        // HTTP/1.0 callers may lack Host; they are no browsers. Nor does one reach a Unix socket, unless through another proxy.
        let isHostFree = isUnixSocket && !plan.isAuthority && !plan.router.usesHosts
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
                    : "The caller's user is not under `users` of listener \(plan.name). Add it there, or call as one of those."
            )
        }
        let signs = Signs(head, in: bytes)
        if signs.metadata.isRefused(by: plan.browsers, head, in: bytes, isSchemeKnown: !plan.isAuthority) {
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
                    By its Via the request has come through countersign \(signs.passes) times: some `url` leads back to \
                    a listener.
                    """)
        }
        if head.method == .head, !head.body.isEmpty {
            return LocalReply(
                .badRequest,
                detail: "A body means nothing with HEAD, and servers differ in what they do (RFC 9110 §9.3.2)."
            )
        }
        if head.expectation == .unknown {
            return LocalReply(
                .badRequest, status: 417,
                detail: "Only `Expect: 100-continue` is understood (RFC 9110 §10.1.1). Leave the field out.")
        }
        return nil
    }

    /// Returns whether the method has servers repeat a request's own fields, or open a tunnel. Methods are compared with case
    /// (RFC 9110 §9.1), but not by all servers. TRACK and DEBUG are those of IIS.
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
    /// The path can be read in ways that differ in what they lead to.
    static let ambiguousPath = LocalReply(
        .badRequest,
        detail: """
            Servers read this path in ways (encoded characters, parameters, dot segments, slashes, capital letters) that lead to \
            routes or challenges that differ. Write it plainly.
            """)

    /// A browser sent the request for a page of another origin.
    static func crossOrigin(listener: String) -> LocalReply {
        LocalReply(
            .callerNotAllowed,
            detail: """
                A browser sent this on behalf of a page of another origin. Listener \(listener) serves programs and its own \
                pages; a list of origins under `browsers` lets others in.
                """)
    }
}

/// What the fields of a request say about it, taken up in one walk over them.
private struct Signs {
    /// What a browser says.
    var metadata = FetchMetadata()
    /// How often it has come through countersign.
    var passes = 0

    @inline(__always)
    init(_ head: RequestHead, in bytes: Span<UInt8>) {
        for index in head.fields.indices {
            let line = head.fields[index]
            if line.kind == .via { passes += LoopGuard.passes(line.value, in: bytes) } else { metadata.take(line) }
        }
    }
}

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

    /// Checks and routes a request. `bytes` holds the head; `user` is the caller's uid where it is known.
    static func decide(_ head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, user: UInt32?) -> Verdict {
        if let refusal = refusal(head, in: bytes, plan: plan, user: user) { return .refused(refusal) }
        if plan.router.isTrivial, let fallback = plan.router.fallback {
            return admit(head, in: bytes, to: Router.Destination(upstream: fallback))
        }
        let host = head.authority.flatMap { Authority(bytes, $0) }.map { bytes.text($0.host) } ?? ""
        let decision = plan.router.decide(
            host: host, path: bytes.text(head.target.path), method: bytes.text(head.methodRange), user: user)
        switch decision {
        case .found(let destination):
            return admit(head, in: bytes, to: destination)
        case .ambiguous:
            return .refused(
                LocalReply(
                    .badRequest,
                    detail:
                        "The path can be read in two ways (encoded signs, dot segments) that two routes take. Write "
                        + "it plainly."))
        case .notAllowed:
            return .refused(
                LocalReply(
                    .callerNotAllowed,
                    detail: user == nil
                        ? "\(stranger) The routes that take this request have `users`."
                        : """
                        The routes that take this request are for other users. Add this one to their `users`, or call as \
                        one of those.
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
    private static func admit(
        _ head: RequestHead, in bytes: Span<UInt8>, to destination: Router.Destination
    ) -> Verdict {
        switch MaxForwards(head, in: bytes) {
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

    private static func refusal(
        _ head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, user: UInt32?
    ) -> LocalReply? {
        // HTTP/1.0 callers may lack Host; they are no browsers.
        if let authority = head.authority, !plan.hosts.accepts(authority, in: bytes) {
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
        let signs = Signs(head, in: bytes, hosts: plan.allowsBrowsers ? nil : plan.hosts)
        if signs.isCrossSite {
            return LocalReply(
                .callerNotAllowed,
                detail: """
                    A browser sent this on behalf of another site. Listener \(plan.name) serves programs; \
                    `browsers: allow` lets such requests in.
                    """)
        }
        switch head.method {
        case .connect, .trace:
            return LocalReply(
                .methodNotAllowed,
                detail: "CONNECT and TRACE are not served (RFC 9110 §9.3.6, §9.3.8). Use another method.")
        default:
            break
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
}

/// What the fields of a request say about it, taken up in one walk over them.
private struct Signs {
    /// Whether a browser sent it on behalf of another site.
    var isCrossSite = false
    /// How often it has come through countersign.
    var passes = 0

    /// What browsers say of requests that no other site's page caused (Fetch Metadata); the one word beside these is
    /// `cross-site`, and what is no word of theirs is not trusted.
    private static let sameSites: [StaticString] = ["same-origin", "same-site", "none"]

    /// `hosts`: those that pages may be from; `nil`: browsers are let in whatever their pages.
    init(_ head: RequestHead, in bytes: Span<UInt8>, hosts: HostPolicy?) {
        for line in head.fields {
            switch line.kind {
            case .secFetchSite where hosts != nil:
                if !Self.sameSites.contains(where: { bytes.matches(line.value, ignoringCase: $0) }) {
                    isCrossSite = true
                }
            case .origin:
                guard let hosts else { continue }
                // `null` is a page without an origin of its own: another site's sandbox, or a file.
                if !Self.isServed(line.value, in: bytes, by: hosts) { isCrossSite = true }
            case .via:
                passes += LoopGuard.passes(line.value, in: bytes)
            default:
                break
            }
        }
    }

    /// Whether the host of a serialised origin, `scheme://host[:port]` (RFC 6454 §6.2), is one that is served.
    private static func isServed(_ origin: ByteRange, in bytes: Span<UInt8>, by hosts: HostPolicy) -> Bool {
        var index = origin.start
        while index < origin.end, bytes[index] != UInt8(ascii: ":") { index += 1 }
        guard index > origin.start, origin.end - index > 3, bytes[index + 1] == UInt8(ascii: "/"),
            bytes[index + 2] == UInt8(ascii: "/")
        else { return false }
        return hosts.accepts(ByteRange(start: index + 3, end: origin.end), in: bytes)
    }
}

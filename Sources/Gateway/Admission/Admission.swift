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
                        : "The routes that take this request are for other users (`routes[].users`)."))
        case .none:
            return .refused(
                LocalReply(
                    .noRoute,
                    detail: "No route of listener \(plan.name) takes this host, path and method; `routes` lists them."))
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

    private static let stranger =
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
                    : "The caller's user is not under `users` of listener \(plan.name).")
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
                .methodNotAllowed, detail: "CONNECT and TRACE are not served (RFC 9110 §9.3.6, §9.3.8).")
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
                .badRequest, status: 417, detail: "Only `Expect: 100-continue` is understood (RFC 9110 §10.1.1).")
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

    /// `hosts`: those that pages may be from; `nil`: browsers are let in whatever their pages.
    init(_ head: RequestHead, in bytes: Span<UInt8>, hosts: HostPolicy?) {
        for line in head.fields {
            switch line.kind {
            case .secFetchSite where hosts != nil:
                if bytes.matches(line.value, ignoringCase: "cross-site") { isCrossSite = true }
            case .origin:
                guard let hosts else { continue }
                // `null` is a page without an origin of its own: another site's sandbox, or a file.
                let host = Self.originHost(bytes.text(line.value))
                if !(host.map { hosts.accepts(host: $0) } ?? false) { isCrossSite = true }
            case .via:
                passes += LoopGuard.passes(line.value, in: bytes)
            default:
                break
            }
        }
    }

    /// The host of a serialised origin, `scheme://host[:port]` (RFC 6454 §6.2).
    private static func originHost(_ origin: String) -> String? {
        let parts = origin.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].hasSuffix(":"), parts[1].isEmpty, !parts[2].isEmpty else { return nil }
        let authority = parts[2]
        if authority.hasPrefix("[") {
            return authority.firstIndex(of: "]").map { String(authority[...$0]) }
        }
        return String(authority.prefix { $0 != ":" })
    }
}

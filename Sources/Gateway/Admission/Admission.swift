// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Who is let in with what: decided from the request's head alone, before anything goes upstream.
enum Admission {
    /// Where an admitted request goes, or the reply that refuses it.
    enum Verdict {
        case admitted(Router.Destination)
        case refused(LocalReply)
    }

    /// Checks and routes a request. `bytes` holds the head; `user` is the caller's uid where it is known.
    static func decide(_ head: RequestHead, in bytes: Span<UInt8>, plan: ListenerPlan, user: UInt32?) -> Verdict {
        if let refusal = refusal(head, in: bytes, plan: plan, user: user) { return .refused(refusal) }
        if plan.router.isTrivial, let fallback = plan.router.fallback {
            return .admitted(Router.Destination(upstream: fallback))
        }
        let host = head.authority.flatMap { Authority(bytes, $0) }.map { bytes.text($0.host).lowercased() } ?? ""
        let decision = plan.router.decide(
            host: host, path: bytes.text(head.target.path), method: bytes.text(head.methodRange), user: user)
        switch decision {
        case .found(let destination):
            return .admitted(destination)
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
                    detail: "The routes that take this request are for other users (`routes[].users`)."))
        case .none:
            return .refused(
                LocalReply(
                    .noRoute,
                    detail: "No route of listener \(plan.name) takes this host, path and method; `routes` lists them."))
        }
    }

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
                .callerNotAllowed, detail: "The caller's user is not under `users` of listener \(plan.name).")
        }
        if !plan.allowsBrowsers, isCrossSite(head, in: bytes, hosts: plan.hosts) {
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

    private static func isCrossSite(_ head: RequestHead, in bytes: Span<UInt8>, hosts: HostPolicy) -> Bool {
        for line in head.fields {
            switch line.kind {
            case .secFetchSite:
                if bytes.matches(line.value, ignoringCase: "cross-site") { return true }
            case .origin:
                // `null` is a page without an origin of its own: another site's sandbox, or a file.
                guard let host = originHost(bytes.text(line.value)), hosts.accepts(host: host) else { return true }
            default:
                break
            }
        }
        return false
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

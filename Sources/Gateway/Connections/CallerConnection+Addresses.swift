// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPWire

// What the response is rewritten by. Made for responses only that name a place or set a cookie.
extension CallerConnection {
    /// How what the present request's upstream says of itself is said to this caller.
    func addressMap() -> AddressMap? {
        guard let upstream else { return nil }
        let request = parser.head
        let (authority, prefix, method) = head.withSpan { bytes in
            let path = request.target.pathAndQuery
            let prefix = bytes.copy(ByteRange(start: path.start, end: min(path.start + stripped, path.end)))
            return (request.authority.map { bytes.copy($0) }, prefix, bytes.text(request.methodRange))
        }
        let own = authority ?? Array((SocketName.local(of: descriptor).authority ?? "localhost").utf8)
        var here = Place(upstream.plan, prefix: prefix)
        here.aliases = aliases(of: upstream.plan, authority: own)
        return AddressMap(
            authority: own, here: here, router: listener.router, methods: Array(Set(["GET", method])), user: user,
            elsewhere: { [listener, worker] in
                let routes = listener.router.routes.map { ($0.upstream, $0.localPrefix, $0.host) }
                let fallback = listener.router.fallback.map { ($0, [UInt8](), String?.none) }
                return (routes + (fallback.map { [$0] } ?? [])).compactMap { name, prefix, host in
                    worker.client(named: name).map { Place($0.plan, prefix: prefix, host: host) }
                }
            })
    }

    /// What the upstream takes for its own address besides its `url`, because we have told it so.
    private func aliases(of plan: UpstreamPlan, authority: [UInt8]) -> [Origin] {
        let range = ByteRange(start: 0, end: authority.count)
        var schemes: [Origin.Scheme] = []
        if plan.forwarding.host == .pass { schemes.append(plan.base.origin.scheme) }
        if plan.forwarding.caller != .none { schemes.append(.http) }
        var origins: [Origin] = []
        for scheme in schemes {
            if let origin = Origin(scheme: scheme, authority.span, range) { origins.append(origin) }
        }
        return origins
    }
}

extension Place {
    fileprivate init(_ plan: UpstreamPlan, prefix: [UInt8], host: String? = nil) {
        self.init(
            upstream: plan.name, origin: plan.base.origin, base: plan.basePath, prefix: prefix, host: host)
    }
}

extension Router.Route {
    /// What it takes off, in bytes.
    fileprivate var localPrefix: [UInt8] {
        guard stripsPrefix, let path else { return [] }
        return Array((path.hasSuffix("/") ? path.dropLast() : Substring(path)).utf8)
    }
}

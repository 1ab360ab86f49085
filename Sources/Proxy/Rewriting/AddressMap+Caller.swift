// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPWire

extension AddressMap {
    /// The map from what `upstream` says of itself to what `caller` is told, for the response to `request`, whose ranges mean
    /// `bytes`. `stripped`: how many bytes of its path the route has taken off.
    convenience init(
        for caller: AcceptedCaller, of request: RequestHead, in bytes: Span<UInt8>, stripped: Int,
        from upstream: UpstreamClient, worker: Worker
    ) {
        let listener = caller.listener
        let path = request.target.pathAndQuery
        let prefix = bytes.copy(ByteRange(start: path.start, end: min(path.start + stripped, path.end)))
        let own =
            request.authority.map { bytes.copy($0) }
            ?? Array((SocketName.local(of: caller.descriptor).authority ?? "localhost").utf8)
        var here = Place(upstream.plan, prefix: prefix)
        here.addAliases(upstream.plan.forwarding, authority: own)
        self.init(
            authority: own, here: here, router: listener.router,
            methods: Array(Set(["GET", bytes.text(request.methodRange)])), user: caller.user,
            elsewhere: { [listener, worker] in
                let routes = listener.router.routes.map { ($0.upstream, $0.localPrefix, $0.host) }
                let fallback = listener.router.fallback.map { ($0, [UInt8](), String?.none) }
                return (routes + (fallback.map { [$0] } ?? [])).compactMap { name, prefix, host in
                    worker.client(named: name).map { Place($0.plan, prefix: prefix, host: host) }
                }
            })
    }
}

extension Place {
    /// Adds what the upstream takes for its own address besides its `url`, because it was told the caller's: many servers
    /// take the name from `Host` and the port from their own socket.
    fileprivate mutating func addAliases(_ policy: ForwardingPolicy, authority: [UInt8]) {
        let range = ByteRange(start: 0, end: authority.count)
        if policy.host == .pass, let told = Origin(scheme: origin.scheme, authority.span, range) {
            aliases = [told, Origin(scheme: origin.scheme, host: told.host, port: origin.port)]
        }
        if policy.caller != .none, let told = Origin(scheme: .http, authority.span, range) { aliases.append(told) }
    }

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

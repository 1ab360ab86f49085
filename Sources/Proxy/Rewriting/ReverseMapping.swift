// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import HTTPWire

/// Replaces an upstream's addresses in a response by local ones, as the caller wrote them.
///
/// A caller that followed the upstream's own address would bypass the proxy, without the session. An address is replaced only if
/// the local one leads to the very same address by the listener's routes. Other addresses stay as they are. An object, so that a
/// response without such fields carries only a pointer.
final class ReverseMapping {
    /// The number of searches per response; later addresses elsewhere stay as they are.
    static let mostSearches = 16

    /// The host and port that the caller used.
    let authority: [UInt8]
    /// The address of the response.
    let here: MappedAddress
    /// The routes of the listener.
    let router: Router
    /// The methods with which a caller may follow.
    let methods: [String]
    /// The caller's uid, if known.
    let user: UInt32?
    /// The other addresses that the listener's routes lead to.
    let elsewhere: () -> [MappedAddress]
    /// The host of `authority` in its canonical form.
    private let ownHost: String
    /// The port of `authority`, with its colon.
    private let port: [UInt8]
    /// The number of searches through the other routes.
    private var searches = 0

    init(
        authority: [UInt8], here: MappedAddress, router: Router, methods: [String] = ["GET"], user: UInt32? = nil,
        elsewhere: @escaping () -> [MappedAddress] = { [] }
    ) {
        self.authority = authority
        self.here = here
        self.router = router
        self.methods = methods
        self.user = user
        self.elsewhere = elsewhere
        let span = authority.span
        if let parsed = Authority(span, ByteRange(start: 0, end: authority.count)) {
            ownHost = HostPolicy.canonical(span.text(parsed.host))
            port = Array(authority[parsed.host.end...])
        } else {
            ownHost = ""
            port = []
        }
    }

    /// Returns a field line of the response for the caller; `nil` if unchanged.
    func local(_ line: FieldLine, in bytes: Span<UInt8>) -> [UInt8]? {
        switch line.kind {
        case .location, .contentLocation:
            return local(bytes, line.value)
        case .refresh:
            guard let range = RefreshTarget.range(bytes, line.value), let target = local(bytes, range) else {
                return nil
            }
            return bytes.copy(ByteRange(start: line.value.start, end: range.start)) + target
                + bytes.copy(ByteRange(start: range.end, end: line.value.end))
        case .setCookie:
            return LocalCookie.local(bytes.extracting(line.value.bounds), from: here)
        default:
            return nil
        }
    }

    /// Returns the reference in `range` for the caller; `nil` if unchanged.
    func local(_ bytes: Span<UInt8>, _ range: ByteRange) -> [UInt8]? {
        guard let reference = URLReference(bytes, range, scheme: here.origin.scheme) else { return nil }
        // By far the most frequent kind of reference.
        if reference.origin == nil, here.keepsPaths, router.isTrivial { return nil }
        let path = bytes.copy(reference.path)
        guard let target = target(for: path, at: reference.origin) else { return nil }
        let tail = bytes.copy(reference.tail)
        if reference.origin == nil, target.host == nil, !Self.isTakenForHost(target.path) {
            return target.path == path ? nil : target.path + tail
        }
        return Array("http://".utf8) + authority(of: target.host) + target.path + tail
    }

    /// Returns the local path that leads to `path` at `origin`, and the host name if it is not the caller's.
    private func target(for path: [UInt8], at origin: Origin?) -> (host: String?, path: [UInt8])? {
        let isHere = origin.map(here.isNamed) ?? true
        if isHere, let local = here.localPath(for: path), leads(local, to: here) { return (nil, local) }
        // A response has one or two such fields. Hundreds of them, with hundreds of routes, would block the loop.
        guard !router.isTrivial, searches < Self.mostSearches else { return nil }
        searches += 1
        let wanted = isHere ? here.origin : origin ?? here.origin
        var found: [(place: MappedAddress, path: [UInt8])] = []
        for place in elsewhere() where place.isNamed(by: wanted) {
            if let local = place.localPath(for: path), leads(local, to: place) { found.append((place, local)) }
        }
        // Two upstreams at one origin differ in their credentials. The result is clear only if one of them is the upstream of
        // this response.
        let first = found.first { $0.place.upstream == here.upstream } ?? found.first
        guard let first,
            first.place.upstream == here.upstream
                || !found.contains(where: { $0.place.upstream != first.place.upstream })
        else { return nil }
        let host = first.place.host.flatMap { $0 == ownHost ? nil : $0 }
        return (host, first.path)
    }

    /// Returns true if a caller's request for the local path is routed to `place`.
    private func leads(_ path: [UInt8], to place: MappedAddress) -> Bool {
        if router.isTrivial { return router.fallback == place.upstream && place.prefix.isEmpty }
        let text = String(decoding: path, as: UTF8.self)
        return methods.contains { method in
            let decision = router.decide(host: place.host ?? ownHost, path: text, method: method, user: user)
            guard case .found(let destination) = decision else { return false }
            return destination.upstream == place.upstream && destination.stripped == place.prefix.count
        }
    }

    /// Returns true if the rest after a path's first slash could be read as a host: after a second slash (RFC 3986
    /// §4.2), which may be a backslash to browsers, and may have a tab before it.
    private static func isTakenForHost(_ path: [UInt8]) -> Bool {
        guard path.count > 1 else { return false }
        return path[1] == UInt8(ascii: "/") || path[1] == UInt8(ascii: "\\") || path[1] == 0x09
    }

    private func authority(of host: String?) -> [UInt8] {
        host.map { Array($0.utf8) + port } ?? authority
    }
}

extension ReverseMapping {
    /// Makes the mapping from `upstream` to `caller` for the response to `request`, whose ranges refer to `bytes`. `stripped` is
    /// the number of path bytes that the route removed.
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
        var here = MappedAddress(upstream.plan, prefix: prefix)
        here.addAliases(upstream.plan.forwarding, authority: own)
        self.init(
            authority: own, here: here, router: listener.router,
            methods: Array(Set(["GET", bytes.text(request.methodRange)])), user: caller.user,
            elsewhere: { [listener, worker] in
                let routes = listener.router.routes.map { ($0.upstream, $0.localPrefix, $0.host) }
                let fallback = listener.router.fallback.map { ($0, [UInt8](), String?.none) }
                return (routes + (fallback.map { [$0] } ?? [])).compactMap { name, prefix, host in
                    worker.client(named: name).map { MappedAddress($0.plan, prefix: prefix, host: host) }
                }
            })
    }
}

extension MappedAddress {
    /// Adds names that the upstream uses for itself besides its `url`, because it received the caller's `Host`. Many
    /// servers take the name from `Host` and the port from their own socket.
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
    /// The prefix that the route strips.
    fileprivate var localPrefix: [UInt8] {
        guard stripsPrefix, let path else { return [] }
        return Array((path.hasSuffix("/") ? path.dropLast() : Substring(path)).utf8)
    }
}

/// Finds the address in a `Refresh` field, `5; url=/next`, as browsers do. The field is in no RFC; HTML has its grammar ("shared
/// declarative refresh steps").
enum RefreshTarget {
    /// Returns the range of the address in `value`, without quotation marks; `nil` if there is none.
    static func range(_ bytes: Span<UInt8>, _ value: ByteRange) -> ByteRange? {
        guard value.end <= bytes.count else { return nil }
        let end = value.end
        var index = skip(bytes, from: value.start, to: end, while: \.isBlank)
        let digits = index
        index = skip(bytes, from: index, to: end) { $0 &- 0x30 < 10 || $0 == UInt8(ascii: ".") }
        guard index > digits, index < end else { return nil }
        guard bytes[index].isBlank || isSeparator(bytes[index]) else { return nil }
        index = skip(bytes, from: index, to: end, while: \.isBlank)
        if index < end, isSeparator(bytes[index]) { index += 1 }
        index = skip(bytes, from: index, to: end, while: \.isBlank)
        index = behindURL(bytes, from: index, to: end) ?? index
        guard index < end else { return nil }
        let quote = bytes[index]
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return ByteRange(start: index, end: end)
        }
        let close = skip(bytes, from: index + 1, to: end) { $0 != quote }
        return ByteRange(start: index + 1, end: close)
    }

    /// Returns the index after `url=`, with white space around the equals sign.
    private static func behindURL(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Int? {
        guard end - start > 3, bytes.matches(ByteRange(start: start, end: start + 3), ignoringCase: "url") else {
            return nil
        }
        let sign = skip(bytes, from: start + 3, to: end, while: \.isBlank)
        guard sign < end, bytes[sign] == UInt8(ascii: "=") else { return nil }
        return skip(bytes, from: sign + 1, to: end, while: \.isBlank)
    }

    private static func skip(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, while condition: (UInt8) -> Bool
    ) -> Int {
        var index = start
        while index < end, condition(bytes[index]) { index += 1 }
        return index
    }

    private static func isSeparator(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ";") || byte == UInt8(ascii: ",") }
}

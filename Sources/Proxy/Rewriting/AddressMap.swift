// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// How what an upstream says of itself is said to the caller of one exchange: with the local address, as the caller wrote
/// it. A caller that followed the upstream's own would walk around the proxy, without the session.
///
/// An address becomes a local one only where that leads to the very same address: the listener's routes are asked. What
/// no local address leads to goes as it came. An object, so that a response without such fields carries a pointer only.
final class AddressMap {
    /// Beyond so many, addresses elsewhere go as they came.
    static let mostSearches = 16

    /// Host and port by which the caller has come.
    let authority: [UInt8]
    /// Where the response comes from.
    let here: Place
    /// The listener's routes.
    let router: Router
    /// The methods by which a caller may follow.
    let methods: [String]
    /// The caller's uid, where it is known.
    let user: UInt32?
    /// What else the listener's routes lead to.
    let elsewhere: () -> [Place]
    /// The host of `authority`, as names are compared.
    private let ownHost: String
    /// The port of `authority`, with its colon.
    private let port: [UInt8]
    /// How often the other routes were gone through.
    private var searches = 0

    init(
        authority: [UInt8], here: Place, router: Router, methods: [String] = ["GET"], user: UInt32? = nil,
        elsewhere: @escaping () -> [Place] = { [] }
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

    /// A field line of the response for the caller; `nil`: as it came.
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

    /// The reference in `range` for the caller; `nil`: as it came.
    func local(_ bytes: Span<UInt8>, _ range: ByteRange) -> [UInt8]? {
        guard let reference = PlaceReference(bytes, range, scheme: here.origin.scheme) else { return nil }
        // By far the most frequent one.
        if reference.origin == nil, here.keepsPaths, router.isTrivial { return nil }
        let path = bytes.copy(reference.path)
        guard let target = target(for: path, at: reference.origin) else { return nil }
        let tail = bytes.copy(reference.tail)
        if reference.origin == nil, target.host == nil, !Self.isTakenForHost(target.path) {
            return target.path == path ? nil : target.path + tail
        }
        return Array("http://".utf8) + authority(of: target.host) + target.path + tail
    }

    /// The local path that leads to `path` at `origin`, and the host name if it is another than the caller's.
    private func target(for path: [UInt8], at origin: Origin?) -> (host: String?, path: [UInt8])? {
        let isHere = origin.map(here.isNamed) ?? true
        if isHere, let local = here.localPath(for: path), leads(local, to: here) { return (nil, local) }
        // A response has one or two such fields. Hundreds of them, with hundreds of routes, would hold up everybody else.
        guard !router.isTrivial, searches < Self.mostSearches else { return nil }
        searches += 1
        let wanted = isHere ? here.origin : origin ?? here.origin
        var found: [(place: Place, path: [UInt8])] = []
        for place in elsewhere() where place.isNamed(by: wanted) {
            if let local = place.localPath(for: path), leads(local, to: place) { found.append((place, local)) }
        }
        // Two upstreams at one origin differ in their credentials: whose is meant is clear only if it is the same again.
        let first = found.first { $0.place.upstream == here.upstream } ?? found.first
        guard let first,
            first.place.upstream == here.upstream
                || !found.contains(where: { $0.place.upstream != first.place.upstream })
        else { return nil }
        let host = first.place.host.flatMap { $0 == ownHost ? nil : $0 }
        return (host, first.path)
    }

    /// Returns whether a caller that asks for that local path gets to that place.
    private func leads(_ path: [UInt8], to place: Place) -> Bool {
        if router.isTrivial { return router.fallback == place.upstream && place.prefix.isEmpty }
        let text = String(decoding: path, as: UTF8.self)
        return methods.contains { method in
            let decision = router.decide(host: place.host ?? ownHost, path: text, method: method, user: user)
            guard case .found(let destination) = decision else { return false }
            return destination.upstream == place.upstream && destination.stripped == place.prefix.count
        }
    }

    /// Returns whether what is behind the first slash of a path could be taken for a host: behind a second one (RFC 3986 §4.2), which
    /// to browsers may also be a backslash, and may have a tab before it.
    private static func isTakenForHost(_ path: [UInt8]) -> Bool {
        guard path.count > 1 else { return false }
        return path[1] == UInt8(ascii: "/") || path[1] == UInt8(ascii: "\\") || path[1] == 0x09
    }

    private func authority(of host: String?) -> [UInt8] {
        host.map { Array($0.utf8) + port } ?? authority
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A pattern of locations: `[scheme://][user[:password]@]host[:port][/path]` with wildcards.
///
/// `*` is a wildcard only as a whole part: the first host label (`*.example.com`: one or more labels), the host (`*`),
/// the port (`:*`), the last path segment (`/a/*`: `/a` and everything below; `/*`: every path but the empty one), the
/// user info (`*@`) or the password (`ann:*@`). Each part is matched on its own. The syntax is the *location
/// description* of Kaazing's `DispatchChallengeHandler`.
public struct LocationPattern: Sendable, Hashable {
    enum UserInfo: Sendable, Hashable {
        case none
        /// `*@`: any user info, which must be present.
        case any
        /// `ann:*@`: any password, which must be present.
        case anyPassword(user: String)
        case exact(Location.UserInfo)
    }

    enum Host: Sendable, Hashable {
        /// `*` has no labels here, `*.example.com` has two.
        case below([String])
        case exact([String])
    }

    enum Port: Sendable, Hashable {
        case any
        case exact(UInt16)
    }

    enum Path: Sendable, Hashable {
        /// `/*` has no segments here, `/a/*` has one.
        case below([String])
        case exact([String])
    }

    let userInfo: UserInfo
    let host: Host
    let port: Port
    let path: Path

    /// Parses a pattern. Throws the reason, even for a pattern that could never match.
    public init(_ text: some StringProtocol) throws(LocationError) {
        let parts = try LocationParts(text)
        userInfo = try Self.userInfo(parts.userInfo)
        host = try Self.host(parts.host)
        port = parts.port == "*" ? .any : .exact(try parts.portNumber())
        path = try Self.path(parts.segments)
    }

    /// Returns whether the pattern can cover a location at `origin`, apart from user info.
    public func mayCover(_ origin: Origin) -> Bool {
        covers(host: Location(WebURL(origin: origin, path: "/")).labels) && covers(port: origin.port)
    }

    /// Returns whether the pattern covers a request to `location`.
    public func covers(_ location: Location) -> Bool {
        covers(host: location.labels) && covers(port: location.port) && covers(path: location.segments)
            && covers(userInfo: location.userInfo)
    }

    /// Returns whether the pattern covers any request below `base`, to its host and port. Otherwise it has no effect
    /// there.
    package func coversSomething(below base: Location) -> Bool {
        guard covers(host: base.labels), covers(port: base.port), userInfo == .none else { return false }
        switch path {
        case .below(let folder): return folder.starts(with: base.segments) || base.segments.starts(with: folder)
        case .exact(let exact): return exact.starts(with: base.segments)
        }
    }

    /// Returns an address at the origin of `base` that the pattern covers: `base` itself if covered, otherwise the
    /// start of the covered path.
    package func beginning(from base: WebURL) -> WebURL {
        guard !covers(Location(base)) else { return base }
        switch path {
        case .below(let folder): return WebURL(origin: base.origin, path: folder.reduce("/") { "\($0)\($1)/" })
        case .exact(let exact): return WebURL(origin: base.origin, path: "/" + exact.joined(separator: "/"))
        }
    }

    /// Returns whether this pattern takes precedence over `other` if both cover a location. Of two different patterns
    /// that cover one location, one always does.
    public func isMoreSpecific(than other: LocationPattern) -> Bool {
        for (mine, theirs) in zip(specificity, other.specificity) where mine != theirs { return mine > theirs }
        return false
    }

    /// The canonical form without a scheme, which parses to this pattern again. Unlike `description`, it includes the
    /// password.
    public var text: String { rendered(revealing: true) }
}

extension LocationPattern {
    private static func userInfo(_ parts: (user: Substring, password: Substring?)?) throws(LocationError) -> UserInfo {
        guard let parts else { return .none }
        if parts.user == "*" {
            guard parts.password == nil else {
                throw LocationError(reason: "no password can follow the user *; *@ matches any user info")
            }
            return .any
        }
        if parts.password == "*" { return .anyPassword(user: LocationParts.normalized(parts.user)) }
        return .exact(Location.UserInfo(parts))
    }

    private static func host(_ text: Substring) throws(LocationError) -> Host {
        if text == "*" { return .below([]) }
        guard text.hasPrefix("*.") else { return .exact(try LocationParts.labels(of: text)) }
        let domain = text.dropFirst(2)
        guard !domain.hasPrefix("[") else {
            throw LocationError(reason: "an IPv6 address has no labels that a * could match")
        }
        return .below(try LocationParts.labels(of: domain))
    }

    private static func path(_ segments: [Substring]) throws(LocationError) -> Path {
        guard !segments.contains("") else { throw LocationError(reason: "the path has an empty segment") }
        guard !segments.dropLast().contains("*") else {
            throw LocationError(reason: "a * in the path must be its last segment")
        }
        let literal = (segments.last == "*" ? segments.dropLast() : segments[...]).map(LocationParts.normalized)
        return segments.last == "*" ? .below(literal) : .exact(literal)
    }
}

extension LocationPattern {
    private func covers(host labels: [String]) -> Bool {
        switch host {
        case .below(let domain): labels.count > domain.count && labels.suffix(domain.count).elementsEqual(domain)
        case .exact(let exact): labels == exact
        }
    }

    private func covers(port number: UInt16) -> Bool {
        switch port {
        case .any: true
        case .exact(let exact): number == exact
        }
    }

    private func covers(path segments: [String]) -> Bool {
        switch path {
        case .below(let folder): !segments.isEmpty && segments.starts(with: folder)
        case .exact(let exact): segments == exact
        }
    }

    private func covers(userInfo info: Location.UserInfo?) -> Bool {
        switch userInfo {
        case .none: info == nil
        case .any: info != nil
        case .anyPassword(let user): info?.user == user && info?.password != nil
        case .exact(let exact): info == exact
        }
    }

    /// The rank of the pattern: the first difference decides, and greater is more specific.
    var specificity: [Int] {
        let hostRank =
            switch host {
            case .below(let labels): [0, labels.count]
            case .exact(let labels): [1, labels.count]
            }
        let pathRank =
            switch path {
            case .below(let segments): [0, segments.count]
            case .exact(let segments): [1, segments.count]
            }
        let userInfoRank =
            switch userInfo {
            case .none: 0
            case .any: 1
            case .anyPassword: 2
            case .exact: 3
            }
        return hostRank + [port == .any ? 0 : 1] + pathRank + [userInfoRank]
    }
}

extension LocationPattern: CustomStringConvertible {
    /// The canonical form with the password hidden.
    public var description: String { rendered(revealing: false) }

    private func rendered(revealing: Bool) -> String {
        let user =
            switch userInfo {
            case .none: ""
            case .any: "*@"
            case .anyPassword(let user): "\(user):*@"
            case .exact(let info):
                info.password.map { "\(info.user):\(revealing ? $0 : "<redacted>")@" } ?? "\(info.user)@"
            }
        let name =
            switch host {
            case .below(let labels): (["*"] + labels).joined(separator: ".")
            case .exact(let labels): labels.joined(separator: ".")
            }
        let suffix =
            switch port {
            case .any: ":*"
            case .exact(80): ""
            case .exact(let number): ":\(number)"
            }
        let folders =
            switch path {
            case .below(let segments): segments + ["*"]
            case .exact(let segments): segments
            }
        return "\(user)\(name)\(suffix)\(folders.map { "/\($0)" }.joined())"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Where a request goes, as location patterns see it: user info, host, port and path; no scheme, query or fragment.
public struct Location: Sendable, Hashable {
    /// Who is named before the `@`.
    public struct UserInfo: Sendable, Hashable {
        /// The user, unreserved characters decoded.
        public let user: String
        /// The password, unreserved characters decoded; `nil` where there is no colon.
        public let password: String?

        /// User info.
        public init(user: String, password: String? = nil) {
            self.user = user
            self.password = password
        }

        init(_ parts: (user: Substring, password: Substring?)) {
            self.init(
                user: LocationParts.normalized(parts.user), password: parts.password.map(LocationParts.normalized))
        }
    }

    /// The user info, if there is any.
    public let userInfo: UserInfo?
    /// The labels of the host in lower case; an IPv6 address is one label, with its brackets.
    public let labels: [String]
    /// The port; the scheme's default where none was written.
    public let port: UInt16
    /// The segments of the path, unreserved characters decoded; none for the empty path and for `/`.
    public let segments: [String]

    /// Parses `[scheme://][user[:password]@]host[:port][/path]`; without scheme and port, 80 is meant. Fails where the
    /// host is missing or no host name, the scheme another, or the port none.
    public init(_ uri: some StringProtocol) throws(LocationError) {
        let parts = try LocationParts(uri)
        userInfo = parts.userInfo.map(UserInfo.init)
        guard !parts.host.contains("*") else {
            throw LocationError(reason: "the host holds a *, which only a pattern does")
        }
        labels = try LocationParts.labels(of: parts.host)
        port = try parts.portNumber()
        segments = parts.segments.map(LocationParts.normalized)
    }

    /// The location of an address, which has no user info.
    public init(_ url: WebURL) {
        userInfo = nil
        let host = url.origin.host
        labels =
            host.utf8.contains(UInt8(ascii: ":"))
            ? ["[\(host)]"] : host.utf8.split(separator: UInt8(ascii: ".")).map { String(Substring($0)) }
        port = url.origin.port
        var segments = url.path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .dropFirst().map(Substring.init)
        while segments.last?.isEmpty == true { segments.removeLast() }
        self.segments = segments.map(LocationParts.normalized)
    }
}

extension Location: CustomStringConvertible {
    /// User, host, port (80 left out) and path; never the password.
    public var description: String {
        let user = userInfo.map { $0.password == nil ? "\($0.user)@" : "\($0.user):<redacted>@" } ?? ""
        let path = segments.map { "/\($0)" }.joined()
        return "\(user)\(labels.joined(separator: "."))\(port == 80 ? "" : ":\(port)")\(path)"
    }
}

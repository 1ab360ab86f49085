// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The target of a request as location patterns see it: user info, host, port and path.
public struct Location: Sendable, Hashable {
    /// User info before the `@`.
    public struct UserInfo: Sendable, Hashable {
        /// The user, with unreserved characters decoded.
        public let user: String
        /// The password, with unreserved characters decoded; `nil` without a colon.
        public let password: String?

        /// Creates user info.
        public init(user: String, password: String? = nil) {
            self.user = user
            self.password = password
        }

        init(_ parts: (user: Substring, password: Substring?)) {
            self.init(
                user: LocationParts.normalized(parts.user), password: parts.password.map(LocationParts.normalized))
        }
    }

    /// The user info, if any.
    public let userInfo: UserInfo?
    /// The labels of the host in lower case. An IPv6 address is one label with its brackets.
    public let labels: [String]
    /// The port, or the scheme's default.
    public let port: UInt16
    /// The segments of the path, with unreserved characters decoded. Empty for the empty path and for `/`.
    public let segments: [String]

    /// Parses `[scheme://][user[:password]@]host[:port][/path]`. Without scheme and port, the port is 80. Throws for a
    /// missing or invalid host, an unknown scheme, or an invalid port.
    public init(_ uri: some StringProtocol) throws(LocationError) {
        let parts = try LocationParts(uri)
        userInfo = parts.userInfo.map(UserInfo.init)
        guard !parts.host.contains("*") else {
            throw LocationError(reason: "the host holds a *, which only a pattern may")
        }
        labels = try LocationParts.labels(of: parts.host)
        port = try parts.portNumber()
        segments = parts.segments.map(LocationParts.normalized)
    }

    /// Creates the location of an address, which has no user info.
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
    /// User, host, port (80 is omitted) and path, without the password.
    public var description: String {
        let user = userInfo.map { $0.password == nil ? "\($0.user)@" : "\($0.user):<redacted>@" } ?? ""
        let path = segments.map { "/\($0)" }.joined()
        return "\(user)\(labels.joined(separator: "."))\(port == 80 ? "" : ":\(port)")\(path)"
    }
}

/// Error of an invalid location, or of a pattern that could never match.
public struct LocationError: Error, Sendable, Hashable {
    /// The error and, if there is one, the correct form; without the text itself.
    public var reason: String

    /// Creates an error.
    public init(reason: String) {
        self.reason = reason
    }
}

extension LocationError: CustomStringConvertible {
    /// The reason.
    public var description: String { reason }
}

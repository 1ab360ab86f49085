// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// An address at an upstream, and the local one that leads there: what a route makes of the one, read backwards.
struct Place {
    /// The upstream's name.
    let upstream: String
    /// Its origin.
    let origin: Origin
    /// By what else it may name itself, since that is what it was told: the caller's `Host`.
    var aliases: [Origin] = []
    /// The path of its `url`, without the slash at its end.
    let base: [UInt8]
    /// What `strip-prefix` takes off, without the slash at its end.
    let prefix: [UInt8]
    /// The one host name that leads there; `nil`: that by which the caller has come.
    var host: String?

    /// True if paths are the same on both sides.
    var keepsPaths: Bool { base.isEmpty && prefix.isEmpty }

    /// Returns whether `origin` is the upstream's.
    ///
    /// So is that of plain HTTP beside one of HTTPS, both at their default ports: servers behind something that ends TLS
    /// for them often do not know of it and name themselves so, and a caller that followed would leave the proxy and TLS
    /// at once. Not the other way round: who is sent to HTTPS would be sent in a circle.
    func isNamed(by origin: Origin) -> Bool {
        if origin == self.origin || aliases.contains(origin) { return true }
        return self.origin.scheme == .https && self.origin.port == 443 && origin.scheme == .http
            && origin.port == 80 && origin.host == self.origin.host
    }

    /// The local path that leads to `path` there, or `nil` where none does: outside of the base path.
    func localPath(for path: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        guard let rest = rest(of: path) else { return nil }
        // Whoever follows removes dot segments first (RFC 3986 §5.2.4), and from another path than the server means.
        guard keepsPaths || !Self.hasDotSegments(rest) else { return nil }
        return prefix + (rest.isEmpty ? [UInt8(ascii: "/")] : rest)
    }

    /// The local `Path` of a cookie that is set for `path` there; `nil`: leave it as it is.
    ///
    /// One that covers all of the upstream covers all that leads there locally, and no more of the listener: what lies
    /// beside may be another upstream.
    func cookiePath(for path: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        // Anything else than a path means the folder of the request (RFC 6265 §5.2.4), which is right here as it is there.
        guard !keepsPaths, path.first == UInt8(ascii: "/") else { return nil }
        let all = prefix.isEmpty ? [UInt8(ascii: "/")] : prefix
        if let rest = rest(of: path) { return rest.count > 1 ? prefix + rest : all }
        let folder = path.last == UInt8(ascii: "/") ? Array(path) : path + [UInt8(ascii: "/")]
        return base.starts(with: folder) ? all : nil
    }

    /// What of `path` is behind the base path.
    private func rest(of path: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        guard path.starts(with: base) else { return nil }
        let rest = Array(path.dropFirst(base.count))
        return rest.isEmpty || rest[0] == UInt8(ascii: "/") ? rest : nil
    }

    private static func hasDotSegments(_ path: [UInt8]) -> Bool {
        path.split(separator: UInt8(ascii: "/")).contains { segment in
            // Longer than `%2e%2e` is none; and a long one would take long to compare.
            guard segment.count <= 6 else { return false }
            let text = String(decoding: segment, as: UTF8.self).lowercased().replacing("%2e", with: ".")
            return text == "." || text == ".."
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import HTTPTypes
internal import SettingsReading

/// Settings of a route from host, path, method and user to an upstream. A condition that is nil matches everything.
package struct RouteSettings: Sendable, Equatable {
    /// Host name in lower case, without a port.
    package var host: String?
    /// Beginning of the path, with its slash. `/a/` covers everything below; `/a` also covers `/a` itself.
    package var path: String?
    /// Methods.
    package var methods: [HTTPRequest.Method]?
    /// Callers that may use the route, within the listener's own list.
    package var users: [UserReference]?
    /// Name of the upstream.
    package var upstream: String
    /// True if `path` is removed before the rest is appended to the upstream's path.
    package var stripPrefix: Bool
}

extension RouteSettings {
    private enum Keys {
        static let host = Key("host", .hostName, without: "any", "Host name in the request's `Host` field.")
        static let path = Key(
            "path", .routePath, without: "any",
            "Prefix of the path: `/a/` covers everything below it; `/a` also covers `/a` itself.")
        static let methods = Key(
            "methods", .filledList(of: .method, else: "is empty: the route would match no request"), without: "any",
            "Methods of the request.")
        static let users = Key(
            "users", .users, without: "any", "Users whose processes may use the route, within the listener's own list.")
        static let upstream = Key(required: "upstream", .upstream, "Upstream of the route's requests.")
        static let stripPrefix = Key(
            "strip-prefix", .flag, default: false,
            "Removes `path` before the rest is appended to the upstream's own path.")
    }

    /// Table of `listeners.routes`.
    static let section = KeySection(
        "listeners.routes",
        [Keys.host, Keys.path, Keys.methods, Keys.users, Keys.upstream, Keys.stripPrefix])

    fileprivate static func read(_ value: Value) -> [RouteSettings] {
        var routes: [RouteSettings] = []
        for element in value.list() ?? [] {
            guard let route = element.fields(of: section).flatMap(read) else { continue }
            if let first = routes.firstIndex(where: { $0.shadows(route) }) {
                element.report(
                    "is never used: routes[\(first)] matches all its requests first and sends them to \(routes[first].upstream)"
                )
            }
            routes.append(route)
        }
        return routes
    }

    private static func read(_ fields: Fields) -> RouteSettings? {
        let (host, path, methods) = (fields[Keys.host], fields[Keys.path], fields[Keys.methods])
        let (users, upstream) = (fields[Keys.users], fields[Keys.upstream])
        let strips = fields.written(Keys.path) != nil || fields.written(Keys.stripPrefix) != nil
        if fields.written(Keys.path) == nil {
            fields.written(Keys.stripPrefix)?.report("needs `path`, the prefix to remove")
        }
        // Without a path, even the default of strip-prefix would be reported.
        let stripPrefix = strips ? fields[Keys.stripPrefix] : false
        guard let upstream else { return nil }
        return RouteSettings(
            host: host, path: path, methods: methods, users: users, upstream: upstream, stripPrefix: stripPrefix)
    }

    /// Returns whether `later` could never match. Users make no difference: the first route that matches decides.
    private func shadows(_ later: RouteSettings) -> Bool {
        guard host == nil || host == later.host else { return false }
        if let methods {
            guard let others = later.methods, others.allSatisfy(methods.contains) else { return false }
        }
        guard let path else { return true }
        guard let other = later.path, other.utf8.starts(with: path.utf8) else { return false }
        return path.hasSuffix("/") || other.utf8.count == path.utf8.count
            || other.utf8.dropFirst(path.utf8.count).first == UInt8(ascii: "/")
    }
}

extension ValueForm where Content == [RouteSettings] {
    /// Routes in the order of the file.
    static let routes = ValueForm("list of mappings", section: RouteSettings.section) {
        RouteSettings.read($0)
    }
}

extension ValueForm where Content == String {
    fileprivate static let routePath = ValueForm("path") { value in
        guard let text = value.word() else { return nil }
        guard text.hasPrefix("/"), !text.contains(where: { "?#* ".contains($0) }) else {
            value.report(
                "\"\(text)\" is not a path prefix (begin with /, without a query or wildcards)")
            return nil
        }
        return text
    }
}

extension ValueForm where Content == String {
    /// A host name or address, without a port.
    static let hostName = ValueForm("host name") { $0.hostName() }
}

extension Value {
    /// Returns a host name or address without a port, as in a `Host` field.
    func hostName() -> String? {
        guard let text = word() else { return nil }
        guard !text.contains(where: { ":/@?#".contains($0) }) || text.hasPrefix("["),
            let location = try? Location(text),
            location.segments.isEmpty, location.port == 80, location.userInfo == nil
        else {
            report("\"\(text)\" is not a host name (write it without a scheme, a port or wildcards)")
            return nil
        }
        return location.labels.joined(separator: ".")
    }
}

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
        var known = KnownRoutes()
        for element in value.list() ?? [] {
            guard let route = element.fields(of: section).flatMap(read) else { continue }
            if let first = known.insert(route, number: routes.count) {
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
}

/// Routes read so far, to find the one that hides another.
private struct KnownRoutes {
    /// Part of a route that another one must share for the one to hide the other.
    private struct Place: Hashable {
        var host: String?
        /// Path without its last slash.
        var path: ArraySlice<UInt8>?
        /// True if the path ends with a slash: only what is below it.
        var isBelow = false
        var method: String?
    }

    /// Routes that no other hides, by number.
    private var routes: [Place: [(number: Int, methods: Set<String>)]] = [:]

    /// Adds a route. Returns the first route that hides it, so that it could never match, or nil.
    ///
    /// Users make no difference: the first route that matches decides.
    mutating func insert(_ route: RouteSettings, number: Int) -> Int? {
        let methods = route.methods.map { Set($0.map(\.rawValue)) }
        if let first = first(hiding: route, methods) { return first }
        var place = Place(host: route.host)
        if let path = route.path.map({ Array($0.utf8) }) {
            place.isBelow = path.last == UInt8(ascii: "/")
            place.path = path.dropLast(place.isBelow ? 1 : 0)
        }
        for method in methods.map({ $0.map(Optional.some) }) ?? [nil] {
            place.method = method
            routes[place, default: []].append((number, methods ?? []))
        }
        return nil
    }

    private func first(hiding route: RouteSettings, _ methods: Set<String>?) -> Int? {
        var first = Int.max
        for host in Set([nil, route.host]) {
            // Methods that hide those of the route have each of them.
            for method in Set([nil, methods?.first]) {
                var place = Place(host: host, method: method)
                func look() {
                    for known in routes[place] ?? [] where method == nil || methods?.isSubset(of: known.methods) == true
                    {
                        first = min(first, known.number)
                    }
                }
                look()
                guard let path = route.path.map({ Array($0.utf8) }) else { continue }
                for (index, byte) in path.enumerated() where byte == UInt8(ascii: "/") {
                    for isBelow in [true, false] {
                        (place.path, place.isBelow) = (path[..<index], isBelow)
                        look()
                    }
                }
                (place.path, place.isBelow) = (path[...], false)
                look()
            }
        }
        return first == .max ? nil : first
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

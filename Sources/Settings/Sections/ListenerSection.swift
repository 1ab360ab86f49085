// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import SettingsReading

extension ListenerSettings {
    /// `listeners:`, each with the way to it.
    static func read(_ value: Value) -> [Placed<ListenerSettings>] {
        guard let elements = value.list() else { return [] }
        if elements.isEmpty { value.report("needs at least one listener") }
        return elements.compactMap { element in
            element.fields().flatMap(read).map { Placed(path: element.path, value: $0) }
        }
    }

    private static func read(_ fields: Fields) -> ListenerSettings? {
        let addressValue = fields.required("address")
        let address = addressValue?.listenAddress()
        let upstreamValue = fields["upstream"]
        let upstream = upstreamValue?.upstreamName()
        let routesValue = fields["routes"]
        let routes = routesValue.map(RouteSettings.read) ?? []
        let hosts = fields["hosts"]?.listOrOne().compactMap { $0.hostName() }
        let users = fields["users"]?.users()
        let callers = fields["callers"]?.integer(in: LimitSettings.counts)
        let browsers = fields["browsers"]?.browserPolicy()
        let isAuthority = fields["authority"]?.flag()
        fields.finish()
        if upstreamValue == nil, routesValue == nil {
            fields.value.report("has neither an upstream nor routes: no request could go anywhere")
        }
        if let address, !address.isLocal {
            addressValue?.report(
                "every machine that reaches this address can use the credentials; there is no TLS and no login here",
                severity: .warning)
        }
        return address.map {
            ListenerSettings(
                address: $0, upstream: upstream, hosts: hosts ?? [], users: users, callers: callers, routes: routes,
                browsers: browsers ?? .refuse, isAuthority: isAuthority ?? false)
        }
    }
}

extension RouteSettings {
    fileprivate static func read(_ value: Value) -> [RouteSettings] {
        var routes: [RouteSettings] = []
        for element in value.list() ?? [] {
            guard let route = element.fields().flatMap(read) else { continue }
            if let first = routes.firstIndex(where: { $0.hides(route) }) {
                element.report("is never taken: routes[\(first)] takes all its requests, to \(routes[first].upstream)")
            }
            routes.append(route)
        }
        return routes
    }

    private static func read(_ fields: Fields) -> RouteSettings? {
        let host = fields["host"]?.hostName()
        let pathValue = fields["path"]
        let path = pathValue?.routePath()
        let methodsValue = fields["methods"]
        let methods = methodsValue?.listOrOne().compactMap { $0.method() }
        let users = fields["users"]?.users()
        let upstream = fields.required("upstream")?.upstreamName()
        let stripValue = fields["strip-prefix"]
        let stripPrefix = stripValue?.flag() ?? false
        fields.finish()
        if methodsValue?.listOrOne().isEmpty == true { methodsValue?.report("is empty: the route takes no request") }
        if pathValue == nil { stripValue?.report("there is no path to strip") }
        guard let upstream else { return nil }
        return RouteSettings(
            host: host, path: path, methods: methods, users: users, upstream: upstream, stripPrefix: stripPrefix)
    }

    /// Returns whether this route leaves nothing for a later one. Users make no difference: the first route that matches decides.
    private func hides(_ later: RouteSettings) -> Bool {
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

extension AdminSettings {
    /// `admin:`.
    static func read(_ value: Value) -> [Placed<ListenAddress>] {
        guard let fields = value.fields() else { return [] }
        let elements = fields["address"]?.listOrOne() ?? []
        fields.finish()
        return elements.compactMap { element in
            guard let address = element.listenAddress() else { return nil }
            if !address.isLocal {
                element.report(
                    "must be a loopback address or a Unix socket: whoever reads the status knows the sessions")
            }
            return Placed(path: element.path, value: address)
        }
    }
}

extension Value {
    /// Users, none of which would be nobody.
    fileprivate func users() -> [UserReference] {
        let elements = listOrOne()
        if elements.isEmpty { report("is empty: nobody could call; leave the key out to allow everybody") }
        return elements.compactMap { $0.user() }
    }

    /// `refuse`, `allow`, or origins.
    fileprivate func browserPolicy() -> BrowserPolicy? {
        guard isScalar else { return list().map { .origins($0.compactMap { $0.browserOrigin() }) } }
        switch text() {
        case "allow": return .allow
        case "refuse": return .refuse
        case nil: return nil
        case let text?:
            report(
                "\"\(text)\" is neither refuse nor allow, nor a list of origins"
                    + didYouMean(text, among: ["allow", "refuse"]))
            return nil
        }
    }

    fileprivate func routePath() -> String? {
        guard let text = word() else { return nil }
        guard text.hasPrefix("/"), !text.contains(where: { "?#* ".contains($0) }) else {
            report("\"\(text)\" is no beginning of a path: it begins with / and has no query and no wildcard")
            return nil
        }
        return text
    }
}

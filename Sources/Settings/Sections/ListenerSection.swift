// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

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
        let upstream = fields["upstream"]
        let routes = fields["routes"]
        let hosts = fields["hosts"]?.listOrOne().compactMap { $0.hostName() }
        let users = fields["users"]?.users()
        let browsers = fields["browsers"]?.choice(BrowserPolicy.self)
        fields.finish()
        if upstream == nil, routes == nil {
            fields.value.report("has neither an upstream nor routes: no request could go anywhere")
        }
        if let address, !address.isLocal {
            addressValue?.report(
                "every machine that reaches this address can use the credentials; there is no TLS and no login here",
                severity: .warning)
        }
        return address.map {
            ListenerSettings(
                address: $0, upstream: upstream?.upstreamName(), hosts: hosts ?? [], users: users,
                routes: (routes?.list() ?? []).compactMap { $0.fields().flatMap(RouteSettings.read) },
                browsers: browsers ?? .refuse)
        }
    }
}

extension RouteSettings {
    fileprivate static func read(_ fields: Fields) -> RouteSettings? {
        let host = fields["host"]
        let path = fields["path"]
        let methods = fields["methods"]?.listOrOne()
        let users = fields["users"]?.users()
        let upstream = fields.required("upstream")?.upstreamName()
        let stripPrefix = fields["strip-prefix"]
        fields.finish()
        if methods?.isEmpty == true { fields.value.report("methods is empty: the route takes no request") }
        if path == nil, let stripPrefix { stripPrefix.report("there is no path to strip") }
        guard let upstream else { return nil }
        return RouteSettings(
            host: host?.hostName(), path: path?.routePath(), methods: methods?.compactMap { $0.method() }, users: users,
            upstream: upstream, stripPrefix: stripPrefix?.flag() ?? false)
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

    fileprivate func routePath() -> String? {
        guard let text = word() else { return nil }
        guard text.hasPrefix("/"), !text.contains(where: { "?#* ".contains($0) }) else {
            report("\"\(text)\" is no beginning of a path: it begins with / and has no query and no wildcard")
            return nil
        }
        return text
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Proxy
internal import SettingsReading

/// Settings of a listener: its address, its callers, and the upstreams of their requests.
package struct ListenerSettings: Sendable, Equatable {
    /// Address to accept connections at.
    package var address: ListenAddress
    /// Upstream of requests that match no route; nil: they are answered `no-route`.
    package var upstream: String?
    /// Accepted host names besides loopback names and the address itself, in lower case, without ports.
    package var hosts: [String]
    /// Callers that are allowed; nil: all.
    package var users: [UserReference]?
    /// Limit on connected callers, and the tokens that name them.
    package var callers = CallerSettings()
    /// Routes. The first that takes a request wins.
    package var routes: [RouteSettings]
    /// Requests of browsers that are served.
    package var browsers: BrowserRule
    /// True if the listener answers auth requests of another proxy and forwards nothing.
    package var answersAuthRequests = false
    /// Path of the health checks of other machines; nil: none.
    package var health: String?
}

extension ListenerSettings {
    private enum Keys {
        static let address = Key(required: "address", .listenAddress, "Address that programs connect to.")
        static let upstream = Key(
            "upstream", .upstream, without: "the only upstream if there are no routes; else none: 404 `no-route`",
            "Upstream of requests that match no route.")
        static let hosts = Key(
            "hosts", .list(of: .hostName), default: [], words: "none",
            "Host names that are accepted besides loopback names, this address, and the hosts of the routes.")
        static let users = Key(
            "users", .users, without: "everybody",
            "Users whose processes are allowed as callers.")
        static let callers = Key(
            "callers", .callers, without: "only `limits.callers` counts",
            "Maximum number of callers connected at once, or the tokens that identify callers.")
        static let routes = Key<[RouteSettings]?>(
            "routes", .routes, "Routes; the first that matches host, path and method decides.")
        static let browsers = Key<BrowserRule>(
            "browsers", .browsers, default: .refuse,
            "Policy for requests that browsers send on behalf of pages of another origin.")
        static let answersAuthRequests = Key(
            "auth-requests", .flag, default: false,
            "Answers auth requests of another proxy (nginx, Envoy) with the fields that a request needs, and forwards nothing."
        )
    }

    private static let health = Key(
        "health", .healthPath, without: "none",
        "Path that answers with the status of `/readyz` and nothing else, whoever asks: for load balancers and kubelets."
    )

    /// Table of `listeners`.
    static let section = KeySection(
        "listeners",
        [
            Keys.address, Keys.upstream, Keys.hosts, Keys.users, Keys.callers, Keys.routes, Keys.browsers,
            Keys.answersAuthRequests, health,
        ])

    /// Reads `listeners`, each with its key path.
    static func read(_ value: Value) -> [Located<ListenerSettings>] {
        guard let elements = value.list() else { return [] }
        if elements.isEmpty { value.report("needs at least one listener") }
        return elements.compactMap { element in
            // `127.0.0.1:8080` is short for `{ address: 127.0.0.1:8080 }`.
            let mapping = element.isScalar && !element.node.isNull ? element.longhand(Keys.address.name) : element
            return mapping.fields(of: section).flatMap(read).map { Located(path: element.path, value: $0) }
        }
    }

    private static func read(_ fields: Fields) -> ListenerSettings? {
        let (address, written, hosts) = (fields[Keys.address], fields[Keys.upstream], fields[Keys.hosts])
        let (users, callers, routes) = (fields[Keys.users], fields[Keys.callers], fields[Keys.routes] ?? [])
        let (browsers, answersAuthRequests) = (fields[Keys.browsers], fields[Keys.answersAuthRequests])
        let hasTarget = fields.written(Keys.upstream) != nil || fields.written(Keys.routes) != nil
        let health = fields[health]
        if answersAuthRequests, let health, health == "/authority" || health.hasPrefix("/authority/") {
            fields.written(Self.health)?.report("is a path of auth requests; choose another one, such as /health")
        }
        let names = fields.value.reading.upstreamNames
        let only = hasTarget || names.count != 1 ? nil : names.first
        if let only { fields.assume(Keys.upstream, only) }
        if !hasTarget, only == nil {
            fields.value.report("has neither an upstream nor routes: add one of them")
        }
        let servesNobody = written == nil && only == nil && routes.isEmpty
        // Over the network, no caller is one of the users.
        if let address, !address.isLocal, users == nil, !servesNobody {
            fields.written(Keys.address)?.report(
                callers?.tokens == nil
                    ? "every machine that reaches this address can use the credentials; there is no TLS and no login here"
                    : "the tokens of callers and all answers cross the network in the clear: there is no TLS here",
                severity: .warning)
        }
        return address.map {
            ListenerSettings(
                address: $0, upstream: written ?? only, hosts: hosts, users: users,
                callers: callers ?? CallerSettings(), routes: routes, browsers: browsers,
                answersAuthRequests: answersAuthRequests, health: health)
        }
    }
}

/// Settings of the listener for health, metrics and status.
package struct AdminSettings: Sendable, Equatable {
    /// Addresses. TCP addresses are loopback and read-only. Empty: `admin.sock` in the runtime directory.
    package var addresses: [ListenAddress]
}

extension AdminSettings {
    private static let address = Key(
        "address", .list(of: .listenAddress), without: "`unix:` and `admin.sock` in the runtime directory",
        "Address of the admin listener, or a list of addresses.")

    /// Table of `admin`.
    static let section = KeySection("admin", [address])

    /// Reads `admin`.
    static func read(_ fields: Fields) -> [Located<ListenAddress>] {
        let elements = fields.written(address)?.listOrOne() ?? []
        return elements.compactMap { element in
            guard let address = element.listenAddress() else { return nil }
            if !address.isLocal {
                element.report(
                    "must be a loopback address or a Unix socket, because the status shows the sessions")
            }
            return Located(path: element.path, value: address)
        }
    }
}

extension ValueForm where Content == [UserReference] {
    /// Users, at least one.
    static let users = filledList(
        of: .user, else: "is empty: no caller would be allowed; leave the key out to allow all")
}

extension ValueForm where Content == String {
    /// A path that a health check asks for, as it stands in the request.
    fileprivate static let healthPath = ValueForm("path") { value in
        guard let text = value.word() else { return nil }
        let isPlain = text.utf8.allSatisfy { byte in
            UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
                || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-._~/".utf8.contains(byte)
        }
        guard text.hasPrefix("/"), text.utf8.count > 1, isPlain else {
            value.report(
                "\"\(text)\" is not a path of letters, digits and -._~/ that begins with /, such as /health")
            return nil
        }
        return text
    }
}

extension ValueForm where Content == BrowserRule {
    /// `refuse`, `allow`, or origins.
    fileprivate static let browsers = ValueForm(
        "`refuse`, `allow`, or a list of origins", choices: ["refuse", "allow"], write: { _ in .scalar("refuse") }
    ) { value in
        guard value.isScalar else { return value.list().map { .origins(Set($0.compactMap { $0.browserOrigin() })) } }
        switch value.text() {
        case "allow": return .allow
        case "refuse": return .refuse
        case nil: return nil
        case let text?:
            value.report(
                "\"\(text)\" is neither refuse nor allow, nor a list of origins"
                    + didYouMean(text, among: ["allow", "refuse"]))
            return nil
        }
    }
}

extension Value {
    /// Returns an origin as a browser writes it (RFC 6454 §6.2): lower case, without a default port.
    func browserOrigin() -> String? {
        guard let text = word() else { return nil }
        guard let url = WebURL(text), url.path == "/", url.query == nil, !text.contains("#"), !text.hasSuffix("/")
        else {
            report(
                "\"\(text)\" is not an origin (use a scheme, a host and optionally a port, such as https://app.example.com)"
            )
            return nil
        }
        return "\(url.origin)"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
package import ChallengeHandling
internal import SettingsReading

/// Settings of an upstream: a server that requests are forwarded to.
package struct UpstreamSettings: Sendable, Equatable {
    /// Name in the configuration.
    package var name: String
    /// Origin, and the path that a request's path is appended to.
    package var url: WebURL
    /// Connections: HTTP, TLS, the proxy. The files of `tls` are read later.
    package var connections = ConnectionSettings()
    /// Time limits.
    package var timeouts = UpstreamPlan.Timeouts()
    /// Part of a request's body that is kept for a replay.
    package var replay = ReplayTiers.standard
    /// Information that the upstream gets besides the caller's own fields.
    package var forwarding = ForwardingPolicy()
    /// MobileFirst 8.0 server of the upstream, if one protects its resources.
    package var mobileFirst: MobileFirstConfiguration?
    /// Health check; nil: no check.
    package var check: UpstreamCheckPlan?

    /// The upstream's settings that logins need.
    package var protected: ProtectedUpstream { ProtectedUpstream(name: name, url: url, mobileFirst: mobileFirst) }
}

extension UpstreamSettings {
    private enum Keys {
        static let url = Key(
            required: "url", .addressWithoutQuery,
            "Address of the upstream; the path of a request is appended to its path.")
        static let tls = Key(
            "tls", .mapping(TLSSettings.section, TLSSettings.read), default: TLSSettings(),
            words: "the system's authorities", "TLS version, trusted authorities, client certificate, and pins.")
        static let http = Key<ConnectionSettings.Version>(
            "http", .choice, default: ConnectionSettings().version,
            "HTTP version; `auto` uses HTTP/2 if the server offers it within TLS.")
        static let timeouts = Key(
            "timeouts", .mapping(UpstreamPlan.Timeouts.section, UpstreamPlan.Timeouts.read),
            default: UpstreamPlan.Timeouts(),
            "Time limits of connections, answers and logins.")
        static let replay = Key(
            "replay", .mapping(ReplayTiers.section, ReplayTiers.read), default: ReplayTiers.standard,
            "Size of the part of a request's body that is kept for a replay.")
        static let proxy = Key<String?>(
            "proxy", .proxy, default: nil,
            "Proxy on the way to the upstream; `http_proxy` in the environment is ignored.")
        static let host = Key<ForwardingPolicy.Host>(
            "host", .choice, default: ForwardingPolicy().host,
            "`Host` field that is sent: the url's host, or the caller's field unchanged."
        )
        static let callerCredentials = Key<ForwardingPolicy.CallerCredentials>(
            "caller-credentials", .choice, default: ForwardingPolicy().callerCredentials,
            "Treatment of a caller's own `Authorization`: replaced by the session's, kept instead of it, or refused with 403."
        )
        static let forwarded = Key<ForwardingPolicy.Caller>(
            "forwarded", .choice, default: ForwardingPolicy().caller,
            "Fields that tell the upstream who called: `Forwarded` (RFC 7239) or `X-Forwarded-*`.")
        static let plaintext = Key<Bool>(
            "plaintext", .plaintext, default: ConnectionSettings().allowsPlaintext,
            "Permission to send secrets over `http://` to another machine.")
        static let check = Key(
            "check", .mapping(UpstreamCheckPlan.section, UpstreamCheckPlan.read), without: "nothing is asked",
            "Health check: a request that shows at intervals if the upstream works.")
        static let mobileFirst = Key(
            "mobilefirst", .fields(of: MobileFirstConfiguration.section),
            "MobileFirst 8.0 server that protects the upstream's resources.")
    }

    /// Table of `upstreams.*`.
    static let section = KeySection(
        "upstreams.*",
        [
            Keys.url, Keys.tls, Keys.http, Keys.timeouts, Keys.replay, Keys.proxy, Keys.host, Keys.callerCredentials,
            Keys.forwarded, Keys.plaintext, Keys.check, Keys.mobileFirst,
        ])

    /// Reads `upstreams`, each with its key path.
    static func read(_ value: Value) -> [Located<UpstreamSettings>] {
        guard let members = value.members() else { return [] }
        if members.isEmpty { value.report("needs at least one upstream") }
        return members.compactMap { name, member in
            if let reason = nameFault(name) { value.reading.report(reason, at: member.keyMark, keyPath: member.path) }
            // `wiki: https://wiki.example.com/` is short for `wiki: { url: https://wiki.example.com/ }`.
            let mapping = member.isScalar && !member.node.isNull ? member.longhand(Keys.url.name) : member
            return mapping.fields(of: section).flatMap { read($0, name: name) }
                .map { Located(path: member.path, value: $0) }
        }
    }

    private static func read(_ fields: Fields, name: String) -> UpstreamSettings? {
        let url = fields[Keys.url]
        let tlsValue = fields.written(Keys.tls)
        let hasTLS = url?.origin.scheme != .http
        if !hasTLS { tlsValue?.report("the upstream is reached without TLS, through http://", severity: .warning) }
        // Without TLS, the effective configuration shows no `tls`.
        let tls = hasTLS || tlsValue != nil ? fields[Keys.tls] : TLSSettings()
        let mobileFirst = fields[Keys.mobileFirst].flatMap {
            MobileFirstConfiguration.read($0, origin: url?.origin)
        }
        var connections = ConnectionSettings()
        connections.version = fields[Keys.http]
        connections.tls = tls
        connections.proxy = fields[Keys.proxy]
        connections.allowsPlaintext = fields[Keys.plaintext]
        let (timeouts, replay, check) = (fields[Keys.timeouts], fields[Keys.replay], fields[Keys.check])
        let forwarding = ForwardingPolicy(
            host: fields[Keys.host], callerCredentials: fields[Keys.callerCredentials], caller: fields[Keys.forwarded])
        return url.map {
            UpstreamSettings(
                name: name, url: $0, connections: connections, timeouts: timeouts, replay: replay,
                forwarding: forwarding, mobileFirst: mobileFirst, check: check)
        }
    }
}

extension ValueForm where Content == Bool {
    /// `allow` or `refuse`.
    fileprivate static let plaintext = ValueForm(
        "`allow`, `refuse`", choices: ["allow", "refuse"], write: { .scalar($0 ? "allow" : "refuse") },
        read: { value in
            switch value.text() {
            case "allow": return true
            case "refuse": return false
            case nil: return nil
            case let text?:
                value.report("\"\(text)\" is not one of allow, refuse")
                return nil
            }
        })
}

extension UpstreamPlan.Timeouts {
    private enum Keys {
        static let connect = Key(
            "connect", .duration, default: UpstreamPlan.Timeouts().connect,
            "Time limit for connecting, including the TLS handshake.")
        static let response = Key(
            "response", .duration, default: UpstreamPlan.Timeouts().response,
            "Time limit from the end of the request to the head of the final answer.")
        static let idle = Key(
            "idle", .duration, default: UpstreamPlan.Timeouts().idle,
            "Time limit without data in either direction; the only limit for streams and tunnels.")
        static let login = Key(
            "login", .duration, default: UpstreamPlan.Timeouts().login,
            "Time limit for a complete login, including renewals.")
    }

    /// Table of `upstreams.*.timeouts`.
    static let section = KeySection(
        "upstreams.*.timeouts", [Keys.connect, Keys.response, Keys.idle, Keys.login])

    fileprivate static func read(_ fields: Fields) -> UpstreamPlan.Timeouts {
        UpstreamPlan.Timeouts(
            connect: fields[Keys.connect], response: fields[Keys.response], idle: fields[Keys.idle],
            login: fields[Keys.login])
    }
}

extension ReplayTiers {
    private enum Keys {
        static let memory = Key(
            "memory", .size, default: ReplayTiers.standard.memory, "Size of the part that is kept in memory.")
        static let disk = Key(
            "disk", .size, default: ReplayTiers.standard.disk,
            "Size of the next part, in an unnamed file in the runtime directory; `0` keeps nothing there.")
    }

    /// Table of `upstreams.*.replay`.
    static let section = KeySection("upstreams.*.replay", [Keys.memory, Keys.disk])

    fileprivate static func read(_ fields: Fields) -> ReplayTiers {
        ReplayTiers(memory: fields[Keys.memory], disk: fields[Keys.disk])
    }
}

extension ValueForm where Content == String? {
    /// `none`, or an address.
    fileprivate static let proxy = ValueForm(
        "`none`, `http://HOST:PORT`, `socks5h://HOST:PORT`", choices: ["none"], write: { .scalar($0 ?? "none") },
        read: { $0.isKeyword("none") ? .some(nil) : $0.proxy() })
}

extension Value {
    /// Returns the address of a proxy in the form that libcurl takes.
    fileprivate func proxy() -> String? {
        guard let text = word() else { return nil }
        let message = "is not a proxy (use none, http://HOST:PORT or socks5h://HOST:PORT)"
        guard let separator = text.firstIndex(of: ":"), text[separator...].hasPrefix("://"),
            case let scheme = text[..<separator].lowercased(), ["http", "socks5h"].contains(scheme)
        else {
            report(message)
            return nil
        }
        let authority = text[separator...].dropFirst(3)
        guard !authority.contains("@") else {
            report("a proxy with a user name and password is not supported; secrets do not belong in this file")
            return nil
        }
        let hasPort = authority.split(separator: ":").last.map { UInt16($0) != nil } ?? false
        guard hasPort, let url = WebURL("http://\(authority)"), url.target == "/" else {
            report(message)
            return nil
        }
        let host = url.origin.host
        return "\(scheme)://\(host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host):\(url.origin.port)"
    }
}

extension UpstreamCheckPlan {
    private enum Keys {
        static let path = Key(
            required: "path", ValueForm("path, optionally with a query") { UpstreamCheckPlan.checkPath($0) },
            "Path that is requested through the real login, appended to the path of `url`.")
        static let statuses = Key(
            "status", .list(of: .integer(in: 200...599)), default: UpstreamCheckPlan(path: "").statuses.sorted(),
            "Statuses of a good answer.")
        static let period = Key(
            "every", .duration(atLeast: .seconds(1)), default: UpstreamCheckPlan(path: "").period,
            "Interval between two checks, varied by up to a tenth.")
    }

    /// Table of `upstreams.*.check`.
    static let section = KeySection("upstreams.*.check", [Keys.path, Keys.statuses, Keys.period])

    /// Reads `upstreams.*.check`.
    static func read(_ fields: Fields) -> UpstreamCheckPlan? {
        let (statuses, period) = (fields[Keys.statuses], fields[Keys.period])
        return fields[Keys.path].map {
            UpstreamCheckPlan(
                path: $0, statuses: Set(statuses.isEmpty ? Keys.statuses.standard : statuses), period: period)
        }
    }

    /// Returns a path with an optional query, as in a request line (RFC 9112 §3.2.1).
    private static func checkPath(_ value: Value) -> String? {
        guard let text = value.word() else { return nil }
        let isVisible = text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
        guard text.utf8.first == UInt8(ascii: "/"), isVisible, text.utf8.count <= 2048 else {
            value.report(
                "is not a path (begin with /; use only visible ASCII characters without #, and write others as %C3%A4)"
            )
            return nil
        }
        return text
    }
}

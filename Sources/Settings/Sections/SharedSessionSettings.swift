// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import SettingsReading
package import SharedSessions

/// Settings of `sessions`: the session store that nodes share.
package struct SharedSessionSettings: Sendable, Equatable {
    /// Session store. The files of its `tls` are read later.
    package var store: RedisStorePlan
    /// Name of the credential whose field `key` seals the sessions.
    package var key: String
    /// Timing of leases.
    package var times = Self.standardTimes

    /// Default timing. A lease is longer here than in the simulated networks of tests.
    package static let standardTimes = {
        var times = LeaseTimes()
        times.lease = .seconds(10)
        return times
    }()
}

extension SharedSessionSettings {
    private enum Keys {
        static let store = Key(required: "store", .store, "Address of the session store.")
        static let prefix = Key(
            "prefix", .name, default: RedisStorePlan(endpoint: .socket("")).prefix,
            "Prefix of all keys and channels; nodes with different prefixes share nothing."
        )
        static let key = Key(
            required: "key", .name, "Credential whose field `key` seals the sessions; its value is equal on all nodes.")
        static let credential = Key("credential", .name, "Credential for the session store.")
        static let tls = Key(
            "tls", .mapping(TLSSettings.section, TLSSettings.read), default: TLSSettings(),
            words: "the system's authorities", "TLS settings for `rediss://`, as in `upstreams.*.tls`.")
        static let lease = Key(
            "lease", .duration(in: .seconds(5) ... .seconds(600)), default: standardTimes.lease,
            "Time that a node may be silent during a login before another node begins it.")
        static let spread = Key(
            "spread", .duration(in: .milliseconds(1) ... .seconds(300)), default: standardTimes.alone,
            "Time within which nodes start their own logins if the session store is unreachable, each at a random moment."
        )
    }

    /// Table of `sessions`.
    static let section = KeySection(
        "sessions", [Keys.store, Keys.prefix, Keys.key, Keys.credential, Keys.tls, Keys.lease, Keys.spread])

    /// Reads `sessions`.
    static func read(_ fields: Fields) -> SharedSessionSettings? {
        let (store, key) = (fields[Keys.store], fields[Keys.key])
        let (prefix, credential) = (fields[Keys.prefix], fields[Keys.credential])
        let (lease, spread) = (fields[Keys.lease], fields[Keys.spread])
        let tlsValue = fields.written(Keys.tls)
        guard let store, let key else { return nil }
        var plan = RedisStorePlan(endpoint: store.endpoint)
        plan.database = store.database
        plan.prefix = prefix
        plan.credential = credential
        var settings = SharedSessionSettings(store: plan, key: key)
        settings.times.lease = lease
        settings.times.alone = spread
        // Without TLS, the effective configuration shows no `tls`.
        if settings.isSecure || tlsValue != nil { settings.store.connections.tls = fields[Keys.tls] }
        if !settings.isSecure {
            tlsValue?.report("the session store is reached without TLS: only rediss:// uses it", severity: .warning)
        }
        if settings.isPlaintext {
            fields.written(Keys.store)?.report(
                "the session store's password and the commands go to another machine in plaintext (sessions are sealed): use "
                    + "rediss://, or a Unix socket", severity: .warning)
        }
        return settings
    }

    private var isSecure: Bool {
        if case .host(_, _, let isSecure) = store.endpoint { isSecure } else { false }
    }

    private var isPlaintext: Bool {
        guard case .host(let host, let port, false) = store.endpoint else { return false }
        return !Origin(scheme: .http, host: host, port: port).isLoopback
    }
}

extension ValueForm where Content == (endpoint: RedisStorePlan.Endpoint, database: Int) {
    fileprivate static let store = ValueForm("address") { $0.store() }
}

extension Value {
    /// Returns the address of a session store and the number of its database.
    fileprivate func store() -> (endpoint: RedisStorePlan.Endpoint, database: Int)? {
        guard let text = word() else { return nil }
        let (socket, plain, secure) = ("redis+unix://", "redis://", "rediss://")
        let known = [socket, plain, secure].first { text.lowercased().hasPrefix($0) }
        guard let known else {
            report(
                "is not a session store (use redis+unix:///PATH, redis://HOST:PORT/DATABASE or rediss://HOST:PORT/DATABASE)"
            )
            return nil
        }
        let rest = text.dropFirst(known.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        guard !authority.contains("@") else {
            report(
                "an address must not contain a user name or a password; keep them in a credential, as `username` and `password`, "
                    + "and name it with `sessions.credential`")
            return nil
        }
        return known == socket
            ? socketStore(rest) : hostStore(authority, rest.dropFirst(authority.count), isSecure: known == secure)
    }

    /// Reads `/path`, or `/path?db=2`.
    private func socketStore(_ rest: Substring) -> (endpoint: RedisStorePlan.Endpoint, database: Int)? {
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        // sun_path of a socket's address has 108 bytes, the last of which is zero (unix(7)).
        guard let path = parts.first, path.hasPrefix("/"), path.utf8.count > 1, path.utf8.count <= 107 else {
            report(
                "is not the address of a Unix socket (use redis+unix:// and an absolute path of at most 107 bytes)"
            )
            return nil
        }
        guard parts.count == 2 else { return (.socket(String(path)), 0) }
        guard parts[1].hasPrefix("db=") else {
            report("has an unknown query: only ?db=NUMBER is allowed")
            return nil
        }
        return databaseNumber(parts[1].dropFirst(3)).map { (.socket(String(path)), $0) }
    }

    private func hostStore(
        _ authority: Substring, _ rest: Substring, isSecure: Bool
    ) -> (endpoint: RedisStorePlan.Endpoint, database: Int)? {
        // Without a port, http and https have different default ports; a written port is equal in both.
        guard let plain = WebURL("http://\(authority)/"), let other = WebURL("https://\(authority)/") else {
            report(
                "is not the address of a session store (use redis://HOST:PORT/DATABASE; port and database are optional)"
            )
            return nil
        }
        let port = plain.origin.port == other.origin.port ? plain.origin.port : 6379
        let endpoint = RedisStorePlan.Endpoint.host(plain.origin.host, port: port, isSecure: isSecure)
        let path = rest.hasPrefix("/") ? rest.dropFirst() : rest
        return path.isEmpty ? (endpoint, 0) : databaseNumber(path).map { (endpoint, $0) }
    }

    private func databaseNumber(_ text: Substring) -> Int? {
        guard let number = Int(text), (0...65_535).contains(number), String(number) == text else {
            report("\"\(text)\" is not a database number (0 to 65535)")
            return nil
        }
        return number
    }
}

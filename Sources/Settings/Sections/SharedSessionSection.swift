// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

extension SharedSessionSettings {
    private static let leases: ClosedRange<Duration> = .seconds(5) ... .seconds(600)
    private static let spreads: ClosedRange<Duration> = .milliseconds(1) ... .seconds(300)

    /// `sessions:`.
    static func read(_ value: Value) -> SharedSessionSettings? {
        guard let fields = value.fields() else { return nil }
        let storeValue = fields.required("store")
        let store = storeValue.flatMap { $0.store() }
        let prefix = fields["prefix"].map { $0.name() }
        let key = fields.required("key")?.name()
        let credential = fields["credential"]?.name()
        let tlsValue = fields["tls"]
        let tls = tlsValue.flatMap(TLSSettings.read)
        let lease = fields["lease"]?.duration(in: leases, words: "from 5s to 10m")
        let spread = fields["spread"]?.duration(in: spreads, words: "at most 5m")
        fields.finish()
        guard let store, let key else { return nil }
        var settings = SharedSessionSettings(store: store.place, database: store.database, key: key)
        settings.credential = credential
        if let prefix { settings.prefix = prefix ?? settings.prefix }
        if let tls { settings.tls = tls }
        if let lease { settings.lease = lease }
        if let spread { settings.spread = spread }
        if !settings.isSecure {
            tlsValue?.report("the engine is spoken to without TLS: only rediss:// has it", severity: .warning)
        }
        if settings.isPlaintext {
            storeValue?.report(
                "the engine's password and what it is asked go to another machine in the clear (sessions are sealed): use "
                    + "rediss://, or a Unix socket", severity: .warning)
        }
        return settings
    }

    private var isSecure: Bool {
        if case .host(_, _, let isSecure) = store { isSecure } else { false }
    }

    private var isPlaintext: Bool {
        guard case .host(let host, let port, false) = store else { return false }
        return !Origin(scheme: .http, host: host, port: port).isLoopback
    }
}

extension Value {
    /// The address of a session engine, and the number of its database.
    fileprivate func store() -> (place: SharedSessionSettings.Store, database: Int)? {
        guard let text = word() else { return nil }
        let (socket, plain, secure) = ("redis+unix://", "redis://", "rediss://")
        let known = [socket, plain, secure].first { text.lowercased().hasPrefix($0) }
        guard let known else {
            report(
                "is no session engine: redis+unix:///PATH, redis://HOST:PORT/DATABASE or rediss://HOST:PORT/DATABASE")
            return nil
        }
        let rest = text.dropFirst(known.count)
        let authority = rest.prefix { !"/?#".contains($0) }
        guard !authority.contains("@") else {
            report(
                "an address holds no user name and password; keep them in a credential, as `username` and `password`, and name "
                    + "that by `sessions.credential`")
            return nil
        }
        return known == socket
            ? socketStore(rest) : hostStore(authority, rest.dropFirst(authority.count), isSecure: known == secure)
    }

    /// `/path`, or `/path?db=2`.
    private func socketStore(_ rest: Substring) -> (place: SharedSessionSettings.Store, database: Int)? {
        let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        // sun_path of a socket's address has 108 bytes, the last of which is zero (unix(7)).
        guard let path = parts.first, path.hasPrefix("/"), path.utf8.count > 1, path.utf8.count <= 107 else {
            report(
                "names no socket: redis+unix:// and an absolute path of at most 107 bytes, as in redis+unix:///run/redis/redis.sock"
            )
            return nil
        }
        guard parts.count == 2 else { return (.socket(String(path)), 0) }
        guard parts[1].hasPrefix("db=") else {
            report("has a query other than ?db=NUMBER")
            return nil
        }
        return databaseNumber(parts[1].dropFirst(3)).map { (.socket(String(path)), $0) }
    }

    private func hostStore(
        _ authority: Substring, _ rest: Substring, isSecure: Bool
    ) -> (place: SharedSessionSettings.Store, database: Int)? {
        // Whether a port is written shows in what is taken where none is.
        guard let plain = WebURL("http://\(authority)/"), let other = WebURL("https://\(authority)/") else {
            report(
                "is no address of a host, and perhaps a port and the number of a database: redis://HOST:PORT/DATABASE")
            return nil
        }
        let port = plain.origin.port == other.origin.port ? plain.origin.port : 6379
        let place = SharedSessionSettings.Store.host(plain.origin.host, port: port, isSecure: isSecure)
        let path = rest.hasPrefix("/") ? rest.dropFirst() : rest
        return path.isEmpty ? (place, 0) : databaseNumber(path).map { (place, $0) }
    }

    private func databaseNumber(_ text: Substring) -> Int? {
        guard let number = Int(text), (0...65_535).contains(number), String(number) == text else {
            report("\"\(text)\" is no number of a database: 0 to 65535")
            return nil
        }
        return number
    }

    /// A length of time within bounds.
    fileprivate func duration(in range: ClosedRange<Duration>, words: String) -> Duration? {
        guard let duration = duration() else { return nil }
        guard range.contains(duration) else {
            report("must be \(words)")
            return nil
        }
        return duration
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import SettingsReading

extension UpstreamSettings {
    /// `upstreams:`, each with the way to it.
    static func read(_ value: Value) -> [Placed<UpstreamSettings>] {
        guard let members = value.members() else { return [] }
        if members.isEmpty { value.report("needs at least one upstream") }
        return members.compactMap { name, member in
            if let reason = nameFault(name) { value.reading.report(reason, at: member.keyMark, keyPath: member.path) }
            return member.fields().flatMap { read($0, name: name) }.map { Placed(path: member.path, value: $0) }
        }
    }

    private static func read(_ fields: Fields, name: String) -> UpstreamSettings? {
        let url = fields.required("url")?.webURL(allowsQuery: false)
        let tlsValue = fields["tls"]
        let tls = tlsValue.flatMap(TLSSettings.read)
        let mobileFirst = fields["mobilefirst"].flatMap { MobileFirstConfiguration.read($0, origin: url?.origin) }
        let http = fields["http"]?.choice(HTTPVersionPolicy.self)
        let timeouts = fields["timeouts"].flatMap(TimeoutSettings.read)
        let replay = fields["replay"].flatMap(ReplaySettings.read)
        let proxy = fields["proxy"].flatMap(ProxySettings.read)
        let host = fields["host"]?.choice(HostPolicy.self)
        let callerCredentials = fields["caller-credentials"]?.choice(CallerCredentialPolicy.self)
        let forwarded = fields["forwarded"]?.choice(ForwardedPolicy.self)
        let plaintext = fields["plaintext"]?.choice(PlaintextPolicy.self)
        let check = fields["check"].flatMap(UpstreamCheckSettings.read)
        fields.finish()
        if url?.origin.scheme == .http {
            tlsValue?.report("the upstream is spoken to without TLS, by http://", severity: .warning)
        }
        return url.map {
            UpstreamSettings(
                name: name, url: $0, tls: tls ?? TLSSettings(pins: []), http: http ?? .automatic,
                timeouts: timeouts ?? TimeoutSettings(), replay: replay ?? ReplaySettings(), proxy: proxy,
                host: host ?? .upstream, callerCredentials: callerCredentials ?? .replace,
                forwarded: forwarded ?? .none,
                plaintext: plaintext ?? .refuse, mobileFirst: mobileFirst, check: check)
        }
    }
}

extension TLSSettings {
    /// `upstreams.*.tls`, and `sessions.tls`.
    static func read(_ value: Value) -> TLSSettings? {
        guard let fields = value.fields() else { return nil }
        let settings = TLSSettings(
            ca: fields["ca"]?.filePath(), certificate: fields["certificate"]?.filePath(),
            key: fields["key"]?.filePath(),
            pins: fields["pin"]?.listOrOne().compactMap { $0.pin() } ?? [],
            minimum: fields["minimum"]?.choice(LowestTLS.self) ?? .tls12)
        fields.finish()
        settings.checkFiles(value)
        if fields.has("key") != fields.has("certificate") {
            value.report("certificate and key go together: \(fields.has("key") ? "certificate" : "key") is missing")
        }
        return settings
    }
}

extension TLSSettings {
    /// Tells what can be told of the files now. The daemon may run as another user, or later: so these are warnings here,
    /// and errors when it starts or reloads.
    private func checkFiles(_ value: Value) {
        let now = utcDate()
        for (kind, path) in [(TLSFile.Kind.ca, ca), (.certificate, certificate), (.key, key)] {
            guard let path else { continue }
            var messages: [String]
            do {
                var file = try TLSFile(kind, at: path)
                messages = file.warnings(now: now)
                file.wipe()
            } catch {
                messages = [error.reason]
            }
            for message in messages {
                value.reading.report(message, atPath: "\(value.path).\(kind.rawValue)", severity: .warning)
            }
        }
    }
}

extension Value {
    /// `sha256//` and the base64 of 32 bytes, as CURLOPT_PINNEDPUBLICKEY takes it.
    fileprivate func pin() -> String? {
        guard let text = word() else { return nil }
        let digest = text.dropFirst("sha256//".count)
        let isBase64 = digest.dropLast().utf8.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
        }
        guard text.hasPrefix("sha256//"), digest.utf8.count == 44, digest.hasSuffix("="), isBase64 else {
            report("is no pin: sha256// and the base64 of the public key's SHA-256, 44 characters")
            return nil
        }
        return text
    }
}

extension TimeoutSettings {
    fileprivate static func read(_ value: Value) -> TimeoutSettings? {
        guard let fields = value.fields() else { return nil }
        var settings = TimeoutSettings()
        if let connect = fields["connect"]?.duration() { settings.connect = connect }
        if let response = fields["response"]?.duration() { settings.response = response }
        if let idle = fields["idle"]?.duration() { settings.idle = idle }
        if let login = fields["login"]?.duration() { settings.login = login }
        fields.finish()
        return settings
    }
}

extension ReplaySettings {
    fileprivate static func read(_ value: Value) -> ReplaySettings? {
        guard let fields = value.fields() else { return nil }
        var settings = ReplaySettings()
        if let memory = fields["memory"]?.size() { settings.memory = memory }
        if let disk = fields["disk"]?.size() { settings.disk = disk }
        fields.finish()
        return settings
    }
}

extension ProxySettings {
    fileprivate static func read(_ value: Value) -> ProxySettings? {
        guard let text = value.word(), text != "none" else { return nil }
        let message = "is neither none nor a proxy: http://HOST:PORT or socks5h://HOST:PORT"
        guard let separator = text.firstIndex(of: ":"), text[separator...].hasPrefix("://"),
            let scheme = Scheme(rawValue: text[..<separator].lowercased())
        else {
            value.report(message)
            return nil
        }
        let authority = text[separator...].dropFirst(3)
        guard !authority.contains("@") else {
            value.report("a proxy with a user name and password is not supported; they do not stand in this file")
            return nil
        }
        let hasPort = authority.split(separator: ":").last.map { UInt16($0) != nil } ?? false
        guard hasPort, let url = WebURL("http://\(authority)"), url.target == "/" else {
            value.report(message)
            return nil
        }
        return ProxySettings(scheme: scheme, host: url.origin.host, port: url.origin.port)
    }
}

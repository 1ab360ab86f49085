// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import SettingsReading

extension TLSSettings {
    private enum Keys {
        static let minimum = Key("minimum", .choice, default: TLSSettings().minimum, "Minimum TLS version.")
        static let ca = Key(
            "ca", .pemFile, without: "the system's", "Authorities that are trusted *instead of* the system's.")
        static let certificate = Key("certificate", .pemFile, "Client certificate, for servers that ask for one.")
        static let key = Key("key", .pemFile, "Private key of `certificate`.")
        static let pins = Key(
            "pin", .list(of: .pin), default: [], words: "none", "Public keys; the server must have one of them.")
    }

    /// Table of `upstreams.*.tls` and `sessions.tls`.
    static let section = KeySection(
        "upstreams.*.tls", [Keys.minimum, Keys.ca, Keys.certificate, Keys.key, Keys.pins])

    /// Reads `upstreams.*.tls` or `sessions.tls`.
    static func read(_ fields: Fields) -> TLSSettings {
        let settings = TLSSettings(
            ca: fields[Keys.ca], certificate: fields[Keys.certificate], key: fields[Keys.key],
            pins: fields[Keys.pins], minimum: fields[Keys.minimum])
        settings.checkFiles(fields.value)
        let hasKey = fields.written(Keys.key) != nil
        if hasKey != (fields.written(Keys.certificate) != nil) {
            fields.value.report("certificate and key go together: \(hasKey ? "certificate" : "key") is missing")
        }
        return settings
    }
}

extension TLSSettings {
    /// Warns about the files as they are now.
    ///
    /// The daemon may run later or as another user, so problems are errors only when it starts or reloads.
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

extension ValueForm where Content == String {
    /// A file in PEM.
    fileprivate static let pemFile = file.described(as: "PEM file")
    /// A digest of a public key.
    fileprivate static let pin = ValueForm("`sha256//BASE64`", plural: "`sha256//BASE64`") { $0.pin() }
}

extension Value {
    /// Returns `sha256//` and the base64 of 32 bytes, the format of CURLOPT_PINNEDPUBLICKEY.
    fileprivate func pin() -> String? {
        guard let text = word() else { return nil }
        let digest = text.dropFirst("sha256//".count)
        let isBase64 = digest.dropLast().utf8.allSatisfy { byte in
            byte.isAlphanumeric || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
        }
        guard text.hasPrefix("sha256//"), digest.utf8.count == 44, digest.hasSuffix("="), isBase64 else {
            report("is not a pin (use sha256// and the base64 of the public key's SHA-256, 44 characters)")
            return nil
        }
        return text
    }
}

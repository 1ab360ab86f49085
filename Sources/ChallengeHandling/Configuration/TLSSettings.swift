// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import SettingsReading

/// Requirements for a server's certificate, and the client's own. Files are PEM, by absolute paths.
package struct TLSSettings: Sendable, Equatable {
    /// Trusted CA certificates in place of the system's.
    package var ca: String?
    /// Client certificate.
    package var certificate: String?
    /// Private key of the client certificate; set only together with `certificate`.
    package var key: String?
    /// Public key pins, one of which the server must match: `sha256//` and base64. Empty without pinning.
    package var pins: [String]
    /// Lowest version of TLS.
    package var minimum: TLSVersion

    /// Creates requirements; the defaults are those of the configuration.
    package init(
        ca: String? = nil, certificate: String? = nil, key: String? = nil, pins: [String] = [],
        minimum: TLSVersion = .tls12
    ) {
        self.ca = ca
        self.certificate = certificate
        self.key = key
        self.pins = pins
        self.minimum = minimum
    }
}

/// Minimum version of TLS.
package enum TLSVersion: String, Sendable, CaseIterable {
    /// TLS 1.2 or later.
    case tls12 = "1.2"
    /// TLS 1.3 or later.
    case tls13 = "1.3"
}

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

    /// Table of `upstreams.*.tls`, `sessions.tls` and `challenges.token.tls`.
    package static let section = KeySection(
        "upstreams.*.tls", [Keys.minimum, Keys.ca, Keys.certificate, Keys.key, Keys.pins])

    /// Reads one of these sections. The files are not opened.
    package static func read(_ fields: Fields) -> TLSSettings {
        let settings = TLSSettings(
            ca: fields[Keys.ca], certificate: fields[Keys.certificate], key: fields[Keys.key],
            pins: fields[Keys.pins], minimum: fields[Keys.minimum])
        let hasKey = fields.written(Keys.key) != nil
        if hasKey != (fields.written(Keys.certificate) != nil) {
            fields.value.report("certificate and key go together: \(hasKey ? "certificate" : "key") is missing")
        }
        return settings
    }
}

extension ValueForm where Content == String {
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

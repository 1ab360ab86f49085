// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// A registered client: its identifier, its key pair, and its configuration at registration.
struct MobileFirstRegistration: Sendable {
    let clientID: String
    let key: any SigningKey
    /// The configuration at registration. If it has changed, another registration or an update is needed.
    let configuration: MobileFirstConfiguration

    /// Validity of a registration for a configuration.
    enum Fitness {
        case current
        case other
        case outdated
    }

    func fitness(for configuration: MobileFirstConfiguration) -> Fitness {
        let old = self.configuration
        guard
            old.api == configuration.api, old.application == configuration.application,
            old.platform == configuration.platform
        else { return .other }
        return old.issuer == configuration.issuer ? .current : .outdated
    }

    /// Returns the name in the state store.
    static func stateName(upstream: String, application: String, identity: String = "") -> String {
        let name = "mobilefirst.\(StateName.word(upstream)).\(StateName.word(application))"
        return identity.isEmpty ? name : "\(name).\(StateName.word(identity))"
    }

    /// The serialized registration.
    var kept: Secret {
        SecretJSON([
            "api": .string("\(configuration.api)"),
            "application": .string(configuration.application),
            "client-id": .string(clientID),
            "key": .string(Base64.encode(key.serialized.revealBytes())),
            "platform": .string(configuration.platform.rawValue),
            "version": .string(configuration.version),
        ]).text
    }

    /// Restores a stored registration; `nil` if `kept` cannot be used.
    init?(kept: Secret, keys: any SigningKeys) {
        guard let value = JSONValue(parsing: kept.revealBytes()),
            let api = value["api"]?.stringValue.flatMap({ WebURL($0) }),
            let application = value["application"]?.stringValue,
            let clientID = value["client-id"]?.stringValue.flatMap(Self.clientID),
            let keyBytes = value["key"]?.stringValue.flatMap({ Base64.decode($0) }),
            let platform = value["platform"]?.stringValue.flatMap(MobileFirstConfiguration.Platform.init(rawValue:)),
            let version = value["version"]?.stringValue,
            let key = try? keys.load(Secret(keyBytes))
        else { return nil }
        self.init(
            clientID: clientID, key: key,
            configuration: .init(api: api, application: application, platform: platform, version: version))
    }

    init(clientID: String, key: any SigningKey, configuration: MobileFirstConfiguration) {
        self.clientID = clientID
        self.key = key
        self.configuration = configuration
    }

    /// Returns the data that the client registers. The device identifier is derived from the key, which is random
    /// enough: no other random source is needed, and the identifier reveals nothing about the machine.
    static func payload(for configuration: MobileFirstConfiguration, key: any SigningKey) -> JSONValue {
        var application: [String: JSONValue] = [
            "id": .string(configuration.application), "clientPlatform": .string(configuration.platform.rawValue),
        ]
        var payload: [String: JSONValue] = [
            "device": [
                "id": .string(Hex.encode(key.modulus.suffix(16))),
                "platform": .string(configuration.platform.rawValue),
                "os": "Linux", "model": "countersign", "deviceDisplayName": "countersign",
            ]
        ]
        if configuration.platform != .web {
            application["version"] = .string(configuration.version)
            payload["attributes"] = ["sdk_protocol_version": 1]
        }
        payload["application"] = .object(application)
        return .object(payload)
    }

    /// Returns `text` if it can be a client identifier.
    static func clientID(_ text: String) -> String? {
        (1...256).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? text : nil
    }
}

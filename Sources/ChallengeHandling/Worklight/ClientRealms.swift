// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// The realms of Worklight 6.x and MobileFirst 7.x that concern the client and not its user: every client answers them by itself.
enum ClientRealms {
    /// Wants a value back in a field of its own with each request.
    static let antiXSRF = "wl_antiXSRFRealm"
    /// Wants a token back, with what the client is.
    static let device = "wl_deviceNoProvisioningRealm"
    /// Their names.
    static let names: Set<String> = [antiXSRF, device]

    /// What `wl_antiXSRFRealm` wants back in `WL-Instance-Id`; `nil` where the challenge holds nothing that a field can carry.
    static func instance(_ challenge: JSONValue) -> String? {
        guard let value = challenge["WL-Instance-Id"]?.stringValue, !value.isEmpty,
            value.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return value
    }
}

/// Answers `wl_deviceNoProvisioningRealm`: the token, and names for application and device.
struct DeviceRealmHandler: SecurityCheckChallengeHandler {
    let challengeName: String
    /// Application and environment, as the server's addresses have them.
    let application: (name: String, environment: String)

    var securityCheck: String { ClientRealms.device }

    func handleChallenge(_ challenge: SecurityCheckChallenge) async throws -> ChallengeAnswer {
        guard let token = challenge.value["token"]?.stringValue else {
            return .cancel(reason: "The server asks which device this is, without the token that the answer needs.")
        }
        return .submitChallengeAnswer([
            "ID": [
                "token": .string(token),
                "app": ["id": .string(application.name), "version": "1.0"],
                "device": [
                    "id": .string("countersign"), "os": "Linux", "model": "countersign",
                    "environment": .string(application.environment),
                ],
                "custom": [:],
            ]
        ])
    }
}

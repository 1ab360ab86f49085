// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Secrets
internal import Synchronization

/// The keys of the fleet as they are now: looked up when the daemon starts, and again whenever files of credentials have changed.
final class HeldFleetKeys: FleetSealing {
    private let name: String
    private let logger = Logger(label: "fleet")
    private let keys = Mutex<FleetKeys?>(nil)

    /// Those of the credential of that name, none until `refresh`.
    init(credential name: String) { self.name = name }

    /// Whether there are any.
    var isThere: Bool { keys.withLock { $0 != nil } }

    /// Looks them up. What cannot be looked up now leaves the keys that there are.
    func refresh(from credentials: any CredentialProvider) async {
        do throws(CredentialError) {
            guard let credential = try await credentials.credential(named: name) else {
                throw CredentialError(
                    reason: "no source knows the credential \(name), which `sessions.key` names; make one by "
                        + "`openssl rand -base64 32`, the same on all hosts")
            }
            let found = try FleetKeys(credential)
            keys.withLock { $0 = found }
        } catch {
            logger.warning("the keys of the fleet cannot be used", metadata: ["reason": "\(error.reason)"])
        }
    }

    func sealed(_ value: Secret, as name: String) -> [UInt8]? {
        keys.withLock { $0 }?.sealed(value, as: name)
    }

    func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        keys.withLock { $0 }?.opened(bytes, as: name)
    }

    func digests(of value: Secret) -> [String] { keys.withLock { $0 }?.digests(of: value) ?? [] }
}

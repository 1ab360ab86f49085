// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The whole configuration, parsed and checked: whatever is in here can be used as it stands.
package struct Settings: Sendable, Equatable {
    /// Where callers are accepted; at least one.
    package var listeners: [ListenerSettings]
    /// Where the administrator is.
    package var admin: AdminSettings
    /// The upstreams in the order of the file; each name once.
    package var upstreams: [UpstreamSettings]
    /// Where credentials come from.
    package var credentials: CredentialSettings
    /// The challenges in the order of the file, which is the order of registration; each name once.
    package var challenges: [ChallengeSettings]
    /// How much at once.
    package var limits: LimitSettings
    /// Where conversations are recorded.
    package var audit: AuditDestination
    /// How many event loops.
    package var workers: WorkerCount
    /// What is logged and how.
    package var log: LogSettings
    /// Whether there is an access log.
    package var accessLog = AccessLogSettings()
    /// The sessions that the hosts of a fleet share; `nil`: none.
    package var sessions: SharedSessionSettings?

    /// The upstream of that name. Every name within these settings has one.
    package func upstream(named name: String) -> UpstreamSettings? {
        upstreams.first { $0.name == name }
    }

    /// The fields that each credential has to have for the challenges that use it, by its name: for whoever has to add them.
    package var neededFields: [String: [String]] {
        var fields: [String: [String]] = [:]
        for challenge in challenges {
            // As somebody writes them down: the name before the password. A one-time password comes from its seed.
            let needed = challenge.kind.neededFields.map { $0 == "totp" ? "totp-seed" : $0 }.sorted { left, right in
                (left == "username" ? 0 : 1, left) < (right == "username" ? 0 : 1, right)
            }
            for name in challenge.credentialNames {
                for field in needed where fields[name]?.contains(field) != true {
                    fields[name, default: []].append(field)
                }
            }
        }
        return fields
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
}

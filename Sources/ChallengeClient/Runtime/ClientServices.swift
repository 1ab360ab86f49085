// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The state shared by all workers: sessions, attempts, and the ports for conversations.
package final class ClientServices: Sendable {
    /// Decides which values may be sent, and holds the sessions.
    package let gate: SharedAttemptGate
    /// Identifies this process in a log with several.
    let processTag = UInt32.random(in: .min ... .max)
    /// The workers and their loops.
    package let roster = WorkerRoster()
    let state: any StateStore
    /// The locks of logins that this process shares with others; `nil` if no other process uses its state.
    let locks: (any LoginLocks)?
    /// The turns of logins whose value a request is trying.
    let trials = TrialTurns()
    /// The credential values used by logins; `nil` if changes are not tracked.
    package let credentialVersions: CredentialVersions?
    /// The disk tier of request bodies; `nil` without one.
    package let replay: ReplaySpool?
    /// The results of health checks.
    package let checks = UpstreamCheckResults()
    /// The sessions shared with other nodes; `nil` if this node is alone.
    package let sharing: (any SessionSharing)?
    /// Returns milliseconds since 1970.
    package let wallClock: @Sendable () -> Int64
    /// Returns a random number in 0..<1.
    let chance: @Sendable () -> Double
    /// Receives the events of logins.
    package let observer: any LoginObserver
    /// Factory of the transports that carry requests to upstreams.
    let transport: TransportFactory

    /// Creates services; `wallClock` returns milliseconds since 1970, `chance` a random number in 0..<1.
    package init(
        gate: SharedAttemptGate, state: any StateStore, locks: (any LoginLocks)? = nil,
        wallClock: @escaping @Sendable () -> Int64, chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        observer: any LoginObserver, replay: ReplaySpool? = nil,
        credentialVersions: CredentialVersions? = nil, sharing: (any SessionSharing)? = nil,
        transport: TransportFactory = .libcurl
    ) {
        self.transport = transport
        self.gate = gate
        self.sharing = sharing
        self.credentialVersions = credentialVersions
        self.chance = chance
        self.state = state
        self.locks = locks
        self.wallClock = wallClock
        self.observer = observer
        self.replay = replay
    }

    /// Opens the latches of challenges that were opened on another node.
    package func latchesOpenedElsewhere(_ challenges: Set<String>) {
        for challenge in challenges { gate.unlatch(challenge) }
        sharing?.forgetFailures()
    }

    /// Passes the end of a login to its waiters, each on its own worker.
    func notify(_ outcomes: SharedAttemptGate.Outcomes) {
        roster.notify(outcomes)
    }
}

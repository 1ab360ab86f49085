// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// What all workers share: the sessions, and what conversations may use of the world.
package final class ClientServices: Sendable {
    /// Says what may be tried, and holds the sessions.
    package let gate: SharedAttemptGate
    /// Tells this process apart from others in one log.
    let processTag = UInt32.random(in: .min ... .max)
    /// Which loops there are.
    package let roster = WorkerRoster()
    let credentials: any CredentialProvider
    let state: any StateStore
    /// Which values the logins have used; without it nobody asks.
    package let ledger: CredentialLedger?
    /// Where bodies go that memory does not keep; without it there is no disk tier.
    package let replay: ReplaySpool?
    /// What is known of upstreams that are asked from time to time.
    package let checks = CheckBook()
    /// What is shared with other hosts; `nil` where this one is alone.
    package let fleet: FleetSessions?
    /// Tells milliseconds since 1970.
    package let wallClock: @Sendable () -> Int64
    /// Makes a number in 0..<1.
    let chance: @Sendable () -> Double
    /// Told of logins.
    package let observer: any LoginObserver

    /// Services; `wallClock` tells milliseconds since 1970, `chance` makes a random number in 0..<1.
    package init(
        gate: SharedAttemptGate, credentials: any CredentialProvider, state: any StateStore,
        wallClock: @escaping @Sendable () -> Int64, chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
        observer: any LoginObserver, replay: ReplaySpool? = nil,
        ledger: CredentialLedger? = nil, fleet: FleetSessions? = nil
    ) {
        self.gate = gate
        self.fleet = fleet
        self.ledger = ledger
        self.chance = chance
        self.credentials = credentials
        self.state = state
        self.wallClock = wallClock
        self.observer = observer
        self.replay = replay
    }

    /// Somebody has opened the latches of these challenges on another host.
    func fleetOpened(_ challenges: Set<String>) {
        for challenge in challenges { gate.unlatch(challenge) }
        fleet?.forgetFailures()
    }

    /// Hands the end of a login to those who waited for it, each on its own worker.
    func tell(_ outcomes: SharedAttemptGate.Outcomes) {
        roster.tell(outcomes)
    }
}

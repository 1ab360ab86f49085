// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How this host's share of the fleet does.
package struct FleetFigures: Sendable, Equatable {
    /// True if the engine answers.
    package var isEngineThere = false
    /// Since when, in milliseconds since 1970.
    package var since: Int64 = 0
    /// Why it does not, where it does not.
    package var reason = "not connected yet"
    /// Requests to the engine.
    package var requests: UInt64 = 0
    /// Those of them that were not answered in time.
    package var unanswered: UInt64 = 0
    /// Leases that were granted to this host.
    package var leases: UInt64 = 0
    /// Sessions that other hosts have won, as they were taken up here.
    package var taken: UInt64 = 0
    /// Sessions of other hosts that cannot be used here.
    package var unusable: UInt64 = 0
    /// Sessions that this host has won for the fleet.
    package var published: UInt64 = 0
    /// Logins that were made without a lease, because the engine was away.
    package var alone: UInt64 = 0
    /// Failures of other hosts' logins that were shared here.
    package var failures: UInt64 = 0

    /// Nothing yet.
    package init() {}
}

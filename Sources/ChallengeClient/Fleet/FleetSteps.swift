// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

/// The state of this host, in which the steps of one-time passwords that any host has used count as used: a server takes each once
/// (RFC 6238 section 5.2), and the next login may be another host's.
///
/// A step used is told to the engine as a latch that opens when the step is over: before the lease is given up, on the same connection.
package struct FleetSteps: StateStore {
    private let local: any StateStore
    private let latches: FleetLatches

    /// The state `local`, with the steps of the fleet.
    package init(local: any StateStore, latches: FleetLatches) {
        self.local = local
        self.latches = latches
    }

    /// What is kept; of one-time passwords all that is known of any host.
    package func load(_ name: String) throws(StateError) -> Secret? {
        let kept = try local.load(name)
        guard name == TimedPasswords.stateName else { return kept }
        let own = kept.flatMap { JSONValue(parsing: $0.revealBytes(), within: .local)?.objectValue } ?? [:]
        let all = own.merging(latches.usedSteps.mapValues { .integer($0) }) { left, right in
            max(left.integerValue ?? 0, right.integerValue ?? 0) == left.integerValue ? left : right
        }
        return Secret(JSONValue.object(all).serialized())
    }

    /// Keeps it here, and has the fleet told of steps.
    package func save(_ value: Secret, as name: String) throws(StateError) {
        if name == TimedPasswords.stateName,
            let steps = JSONValue(parsing: value.revealBytes(), within: .local)?.objectValue?.compactMapValues(
                \.integerValue)
        {
            latches.used(steps)
        }
        try local.save(value, as: name)
    }

    /// Forgets it here.
    package func remove(_ name: String) throws(StateError) { try local.remove(name) }
}

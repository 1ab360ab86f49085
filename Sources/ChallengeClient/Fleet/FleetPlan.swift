// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Which sessions a host shares with the fleet, under what names.
package struct FleetPlan: Sendable {
    /// What the engine knows a session by, and what the configuration says of it.
    package struct Place: Sendable, Equatable {
        /// The same on all hosts whose configuration of it is the same.
        package var name: String
        /// A digest of that configuration; a session of another is not used.
        package var configuration: [UInt8]

        /// A place.
        package init(name: String, configuration: [UInt8]) {
            self.name = name
            self.configuration = configuration
        }
    }

    /// The sessions that are asked for where nobody names a scope: followed from the start.
    package var keys: [SessionKey]
    private let findPlace: @Sendable (SessionKey) -> Place?

    /// A plan; `findPlace` tells the place of a session of whatever scope, `nil` for one that each host wins itself.
    package init(keys: [SessionKey] = [], findPlace: @escaping @Sendable (SessionKey) -> Place? = { _ in nil }) {
        self.keys = keys
        self.findPlace = findPlace
    }

    /// The place of a session; `nil` where each host wins its own.
    package func place(of key: SessionKey) -> Place? { findPlace(key) }
}

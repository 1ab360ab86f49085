// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What an upstream is asked from time to time, to know whether it serves.
package struct UpstreamCheckSettings: Sendable, Equatable {
    /// Path and query, below the upstream's own path.
    package var path: String
    /// The statuses of a good answer.
    package var statuses: Set<Int>
    /// How often; at least a second.
    package var period: Duration
}

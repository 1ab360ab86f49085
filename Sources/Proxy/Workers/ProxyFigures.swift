// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Counters of the whole proxy, for what happens once per connection at most. Each is written by all workers with one relaxed
/// addition. What happens once per request is counted by each worker for itself: see `WorkerMeter`.
package final class ProxyFigures: Sendable {
    private let connections = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let tunnels = Atomic<Int>(0)

    /// Counters at zero.
    package init() {}

    /// Callers connected now.
    package var openConnections: Int { connections.load(ordering: .relaxed) }
    /// Callers ever connected.
    package var acceptedConnections: Int { accepted.load(ordering: .relaxed) }
    /// Connections that another protocol is spoken on now.
    package var openTunnels: Int { tunnels.load(ordering: .relaxed) }

    func connectionOpened() {
        connections.wrappingAdd(1, ordering: .relaxed)
        accepted.wrappingAdd(1, ordering: .relaxed)
    }

    func connectionClosed() { connections.wrappingSubtract(1, ordering: .relaxed) }

    func tunnelOpened() { tunnels.wrappingAdd(1, ordering: .relaxed) }

    func tunnelClosed() { tunnels.wrappingSubtract(1, ordering: .relaxed) }

}

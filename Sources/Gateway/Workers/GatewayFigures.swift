// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Counters of the whole gateway. Each is written by all workers with one relaxed addition.
package final class GatewayFigures: Sendable {
    private let connections = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let exchanges = Atomic<Int>(0)
    private let tunnels = Atomic<Int>(0)
    private let replies = Mutex<[LocalReply.Code: Int]>([:])

    /// Counters at zero.
    package init() {}

    /// Callers connected now.
    package var openConnections: Int { connections.load(ordering: .relaxed) }
    /// Callers ever connected.
    package var acceptedConnections: Int { accepted.load(ordering: .relaxed) }
    /// Exchanges ever begun.
    package var begunExchanges: Int { exchanges.load(ordering: .relaxed) }
    /// Connections that another protocol is spoken on now.
    package var openTunnels: Int { tunnels.load(ordering: .relaxed) }
    /// Local replies by code.
    package var localReplies: [LocalReply.Code: Int] { replies.withLock { $0 } }

    func connectionOpened() {
        connections.wrappingAdd(1, ordering: .relaxed)
        accepted.wrappingAdd(1, ordering: .relaxed)
    }

    func connectionClosed() { connections.wrappingSubtract(1, ordering: .relaxed) }

    func exchangeBegan() { exchanges.wrappingAdd(1, ordering: .relaxed) }

    func tunnelOpened() { tunnels.wrappingAdd(1, ordering: .relaxed) }

    func tunnelClosed() { tunnels.wrappingSubtract(1, ordering: .relaxed) }

    func replied(_ code: LocalReply.Code) { replies.withLock { $0[code, default: 0] += 1 } }
}

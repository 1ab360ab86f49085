// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The bounds of all workers together, and their patience with callers.
package struct WorkerLimits: Sendable {
    /// Connections of callers at once.
    package var callers: Int
    /// Exchanges at once.
    package var exchanges: Int
    /// For a request head, from its first byte, and for the first one of a connection.
    package var headTime: Duration
    /// Between two pieces of a request's body.
    package var bodyTime: Duration
    /// Between two requests of a kept connection.
    package var idleTime: Duration
    /// For the first request of a caller who connected just before a drain.
    package var drainGrace = Duration.seconds(1)

    /// Limits; the times are those that keep a slow caller from holding a connection for nothing.
    package init(
        callers: Int = 1024, exchanges: Int = 4096, headTime: Duration = .seconds(30),
        bodyTime: Duration = .seconds(60), idleTime: Duration = .seconds(300)
    ) {
        self.callers = callers
        self.exchanges = exchanges
        self.headTime = headTime
        self.bodyTime = bodyTime
        self.idleTime = idleTime
    }
}

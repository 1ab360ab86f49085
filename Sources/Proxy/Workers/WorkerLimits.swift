// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The bounds of all workers together, and their patience with callers.
package struct WorkerLimits: Sendable {
    /// Connections of callers at once.
    package var callers: Int
    /// Exchanges at once.
    package var exchanges: Int
    /// For a request head, from its first byte.
    package var headTime: Duration
    /// For the first byte of a connection, if that is less than `headTime`: who says nothing holds a place for nothing.
    package var silentTime = Duration.seconds(10)
    /// Time without a request after which a connection may be closed for another caller, where places are short. Within it
    /// a first request may be on its way.
    package var evictionAge = Duration.seconds(1)
    /// For each `bodyPace` of a request's body, while it is wanted.
    package var bodyTime: Duration
    /// Bytes of a body that have to come within `bodyTime`, or else all that is left of it.
    package var bodyPace = 1024
    /// For each `writePace` of a response, while it waits for the caller.
    package var writeTime: Duration
    /// Bytes of a response that have to go within `writeTime`, or else all that wait. More than this goes at once when a caller
    /// that reads steadily, however slowly, opens its window of TCP again.
    package var writePace = 16_384
    /// Between two requests of a kept connection.
    package var idleTime: Duration
    /// Without a request until a kept connection gives its buffers back.
    package var quietTime = Duration.seconds(2)
    /// For the first request of a caller who connected just before a drain: on a busy machine seconds may lie between the two.
    package var drainGrace = Duration.seconds(5)

    /// Limits; the times are those that keep a slow caller from holding a connection for nothing.
    package init(
        callers: Int = 1024, exchanges: Int = 4096, headTime: Duration = .seconds(30),
        bodyTime: Duration = .seconds(60), writeTime: Duration = .seconds(300), idleTime: Duration = .seconds(300)
    ) {
        self.callers = callers
        self.exchanges = exchanges
        self.headTime = headTime
        self.bodyTime = bodyTime
        self.writeTime = writeTime
        self.idleTime = idleTime
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop

/// Whether the workers' loops turn. An idle loop sleeps, so somebody has to `ping` regularly.
package struct WorkerPulse: Sendable {
    /// The time between two pings at most, where nobody asks for more.
    package static let period = Duration.seconds(10)
    /// A loop that has not turned for this long after a ping is stuck.
    private static let patience = Duration.seconds(5)

    private let loops: [EventLoop]

    init(loops: [EventLoop]) { self.loops = loops }

    /// Has every loop turn.
    package func ping() {
        for loop in loops { loop.ping() }
    }

    /// Returns whether every loop has turned since the last ping but one, `period` being the time between pings.
    package func isSteady(period: Duration = WorkerPulse.period) -> Bool {
        loops.allSatisfy { $0.clockNow - $0.lastTurn < period + Self.patience }
    }
}

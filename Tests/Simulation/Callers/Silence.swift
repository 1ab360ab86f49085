// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop

/// A caller's silence on its connection, almost until the proxy's time limit: what it sends then is not late.
struct Silence {
    /// The time limits of the proxy: for the first byte, and for a head from its first byte on.
    private static let firstByte = Duration.seconds(10)
    private static let head = Duration.seconds(30)
    /// The time that the proxy may take to notice what begins the limit.
    private static let notice = Duration.milliseconds(5)

    private let end: LoopInstant
    /// The rest of a request whose beginning is sent.
    let rest: [UInt8]

    /// Creates the silence of a caller that begins it now, with the `rest` of a head to send.
    init(from now: LoopInstant, rest: [UInt8] = []) {
        end = now + (rest.isEmpty ? Self.firstByte : Self.head)
        self.rest = rest
    }

    /// Returns true if the limit ends within the next `duration`.
    func ends(within duration: Duration, from now: LoopInstant) -> Bool {
        now < end && now + duration > end + Self.notice
    }

    /// Returns true if the limit may have ended.
    func isOver(at now: LoopInstant) -> Bool { now >= end }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// What becomes of an exchange that a drain has waited for in vain.
extension DownstreamConnection {
    /// The time of the drain is over. Who has got nothing of a response yet is told why it will get none; whose response has begun
    /// sees that it is cut off.
    func turnAway() {
        switch phase {
        case .exchange where !response.hasBegun:
            breakOff(
                LocalReply(
                    .draining,
                    detail:
                        "The daemon stops, and this exchange was not over in the time for that. The request may have "
                        + "reached the upstream: send it again where that does no harm, once the daemon serves again.",
                    retryAfter: 1))
        case .exchange where response.endsWithConnection && !response.isWhole:
            // A plain end would pass for that of the body.
            flush()
            close(resetting: true)
        case .closing, .lingering: break
        case .closed, .exchange, .head, .reply, .tunnel: close()
        }
    }
}

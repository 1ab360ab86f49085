// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What one worker counts of the exchanges with one upstream: plain numbers, touched on the worker's loop only.
///
/// A client of the upstream takes hold of it when it is made, so that counting looks nothing up; and it outlives the
/// client, so that no count goes backwards when a reload makes another.
package final class UpstreamMeter {
    /// How an exchange ended.
    package enum End {
        /// With a response of the upstream, of that status.
        case response(status: Int)
        /// With a local reply, which is counted elsewhere.
        case localReply
        /// The response, of that status, broke off.
        case broken(status: Int)
        /// The caller went away, or was too slow.
        case callerLost
    }

    /// What was counted.
    package private(set) var reading: UpstreamReading

    /// A meter at zero.
    package init(name: String) { reading = UpstreamReading(name: name) }

    /// An exchange is over. `whole` and `own`: how long it took, and our share of it, in nanoseconds.
    package func ended(_ end: End, whole: UInt64, own: UInt64) {
        switch end {
        case .response(let status): reading.count(status: status)
        case .localReply: break
        case .broken(let status):
            reading.count(status: status)
            reading.brokenResponses &+= 1
            return
        case .callerLost:
            reading.lostCallers &+= 1
            return
        }
        reading.whole.add(whole)
        reading.own.add(own)
    }

    /// A challenge was met; not on the path of a request that meets none.
    func met(_ challenge: String, _ outcome: ChallengeCount.Outcome) {
        reading.challenges[ChallengeCount(challenge: challenge, outcome: outcome), default: 0] &+= 1
    }
}

/// The meters of one worker, by upstream. What was once counted stays, also when a reload leaves the upstream out.
package final class UpstreamMeters {
    private var meters: [String: UpstreamMeter] = [:]

    init() {}

    /// That of an upstream.
    func meter(of name: String) -> UpstreamMeter {
        if let known = meters[name] { return known }
        let made = UpstreamMeter(name: name)
        meters[name] = made
        return made
    }

    /// What all of them have counted.
    package var readings: [UpstreamReading] { meters.values.map(\.reading) }
}

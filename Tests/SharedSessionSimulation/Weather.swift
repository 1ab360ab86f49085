// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SessionStoreModel
import TestSupport

/// The faults of a simulated group of nodes. Times are in milliseconds; likelihoods are between 0 and 1.
struct Weather {
    var nodes = 3
    /// Duration of the faults, and of the time without faults after it.
    var duration: Int64 = 60_000
    var calm: Int64 = 75_000
    /// Between two requests of one node's callers, at most.
    var callerPause: Int64 = 4_000
    /// That a message between a node and the session store is lost, comes twice, or takes seconds.
    var loss = 0.0, duplicates = 0.0, late = 0.0
    /// Largest error of a node's clock.
    var skew: Int64 = 0
    /// Number of each fault.
    var kills = 0, outages = 0, dataLosses = 0, slowTimes = 0, partitions = 0, restartsOfServer = 0, passwords = 0,
        drops = 0
    /// The likelihoods of a login that takes up to `longestLogin`, and of one that ends without a usable answer.
    var slowLogins = 0.0, unknown = 0.0
    var longestLogin: Int64 = 15_000
    /// The lifetime of a session.
    var life: Int64 = 30_000
    /// True if all nodes get their first requests at once.
    var isStampede = true

    /// Everything at once.
    static func storm(_ random: inout SplitMix) -> Weather {
        var weather = Weather()
        weather.nodes =
            Int.random(in: 0..<20, using: &random) == 0
            ? Int.random(in: 20...50, using: &random) : Int.random(in: 3...10, using: &random)
        if weather.nodes > 15 { weather.duration = 30_000 }
        func some(_ most: Int) -> Int { Int.random(in: 0...most, using: &random) }
        func share(_ most: Double) -> Double {
            Bool.random(using: &random) ? Double.random(in: 0..<most, using: &random) : 0
        }
        weather.loss = share(0.2)
        weather.duplicates = share(0.2)
        weather.late = share(0.1)
        weather.skew = Int64(some(2) * 2_000)
        weather.kills = some(4)
        weather.outages = some(2)
        weather.dataLosses = some(1)
        weather.slowTimes = some(1)
        weather.partitions = some(2)
        weather.restartsOfServer = some(2)
        weather.passwords = some(2)
        weather.drops = some(1)
        weather.slowLogins = share(0.4)
        weather.unknown = share(0.4)
        weather.isStampede = Bool.random(using: &random)
        // Leases run out while logins go on.
        if Int.random(in: 0..<4, using: &random) == 0 {
            weather.slowLogins = 0.8
            weather.partitions = 6
        }
        return weather
    }
}

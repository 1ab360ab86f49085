// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EngineModel
import TestSupport

/// What a simulated fleet has to bear. Times are in milliseconds; a chance is between 0 and 1.
struct Weather {
    var hosts = 3
    /// How long faults go on; then all is well for a while.
    var duration: Int64 = 60_000
    var calm: Int64 = 75_000
    /// Between two requests of one host's callers, at most.
    var callerPause: Int64 = 4_000
    /// That a message between a host and the engine is lost, comes twice, or takes seconds.
    var loss = 0.0, duplicates = 0.0, late = 0.0
    /// How far hosts' clocks are off, at most.
    var skew: Int64 = 0
    /// How often each happens.
    var kills = 0, outages = 0, dataLosses = 0, slowTimes = 0, partitions = 0, restartsOfServer = 0, passwords = 0,
        drops = 0
    /// That a login takes up to `longestLogin`, or ends without an answer that can be used.
    var slowLogins = 0.0, unknown = 0.0
    var longestLogin: Int64 = 15_000
    /// The life of a session.
    var life: Int64 = 30_000
    /// Whether all hosts get their first requests at once.
    var isStampede = true

    /// Everything at once.
    static func storm(_ random: inout SplitMix) -> Weather {
        var weather = Weather()
        weather.hosts =
            Int.random(in: 0..<20, using: &random) == 0
            ? Int.random(in: 20...50, using: &random) : Int.random(in: 3...10, using: &random)
        if weather.hosts > 15 { weather.duration = 30_000 }
        func some(_ most: Int) -> Int { Int.random(in: 0...most, using: &random) }
        func chance(_ most: Double) -> Double {
            Bool.random(using: &random) ? Double.random(in: 0..<most, using: &random) : 0
        }
        weather.loss = chance(0.2)
        weather.duplicates = chance(0.2)
        weather.late = chance(0.1)
        weather.skew = Int64(some(2) * 2_000)
        weather.kills = some(4)
        weather.outages = some(2)
        weather.dataLosses = some(1)
        weather.slowTimes = some(1)
        weather.partitions = some(2)
        weather.restartsOfServer = some(2)
        weather.passwords = some(2)
        weather.drops = some(1)
        weather.slowLogins = chance(0.4)
        weather.unknown = chance(0.4)
        weather.isStampede = Bool.random(using: &random)
        // Leases run out while logins go on.
        if Int.random(in: 0..<4, using: &random) == 0 {
            weather.slowLogins = 0.8
            weather.partitions = 6
        }
        return weather
    }
}

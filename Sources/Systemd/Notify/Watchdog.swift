// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What the service manager expects of a service with `WatchdogSec=`.
package struct Watchdog: Equatable, Sendable {
    /// The time without a ``NotifyState/watchdog`` after which the manager kills the service.
    package let interval: Duration

    /// The time between two beats: half the interval, as sd_watchdog_enabled(3) recommends.
    package var beat: Duration { interval / 2 }

    /// Reads `WATCHDOG_USEC` (microseconds) and `WATCHDOG_PID` from `environment`.
    ///
    /// - Returns: nil where nobody watches, or where another process than `process` is meant.
    /// - Throws: where one of the two is no positive whole number.
    package static func expected(
        in environment: [String: String], of process: Int32
    ) throws(WatchdogError) -> Watchdog? {
        guard let microseconds = environment["WATCHDOG_USEC"] else { return nil }
        if let meant = environment["WATCHDOG_PID"] {
            guard let meant = Int32(meant), meant > 0 else {
                throw WatchdogError(variable: "WATCHDOG_PID", value: meant)
            }
            guard meant == process else { return nil }
        }
        // Beyond Int64, some 292 000 years, nobody is watched.
        guard let count = UInt64(microseconds), count > 0 else {
            throw WatchdogError(variable: "WATCHDOG_USEC", value: microseconds)
        }
        guard let count = Int64(exactly: count) else { return nil }
        return Watchdog(interval: .microseconds(count))
    }
}

/// A variable of the watchdog that nobody can obey.
package struct WatchdogError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The environment variable.
    package let variable: String
    /// Its value.
    package let value: String

    /// What is wrong, and what to do.
    package var description: String {
        "\(variable) is \(String(reflecting: value)), not a positive whole number; systemd sets it from WatchdogSec=, so unset it "
            + "where the daemon is started by hand"
    }
}

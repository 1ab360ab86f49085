// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// The fakes' clock: milliseconds since 1970, as MobileFirst counts.
package struct FakeClock: Sendable {
    /// The time now, in milliseconds since 1970.
    package var now: @Sendable () -> Int64

    /// Creates a clock that reads the time from a closure.
    package init(now: @escaping @Sendable () -> Int64) {
        self.now = now
    }

    /// The clock of the system.
    package static var system: FakeClock {
        FakeClock {
            var time = timespec()
            guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else { return 0 }
            return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        }
    }
}

/// A clock that a test moves.
package final class ManualClock: Sendable {
    private let milliseconds: Mutex<Int64>

    /// Creates a clock stopped at a time in milliseconds since 1970.
    package init(at milliseconds: Int64 = 1_469_000_000_000) {
        self.milliseconds = Mutex(milliseconds)
    }

    /// The time it shows, in milliseconds since 1970.
    package var now: Int64 { milliseconds.withLock { $0 } }

    /// This clock, for the fakes.
    package var clock: FakeClock { FakeClock { [self] in now } }

    /// Moves it on by that many seconds.
    package func advance(seconds: Double) {
        milliseconds.withLock { $0 += Int64(seconds * 1000) }
    }
}

/// Returns an HTTP date (RFC 9110 §5.6.7) of milliseconds since 1970.
package func httpDate(_ milliseconds: Int64) -> String {
    let seconds = milliseconds.quotientAndRemainder(dividingBy: 1000).quotient
    let days = seconds >= 0 ? seconds / 86_400 : 0
    let rest = seconds >= 0 ? seconds % 86_400 : 0
    // Days to a date of the Gregorian calendar, counted in eras of 400 years that begin in March.
    let shifted = days + 719_468
    let era = shifted / 146_097
    let dayOfEra = shifted % 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * month + 2) / 5 + 1
    let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
    let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    let months = ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"]
    let time = [rest / 3600, rest / 60 % 60, rest % 60].map(twoDigits).joined(separator: ":")
    return "\(weekdays[Int(days % 7)]), \(twoDigits(day)) \(months[Int(month)]) \(year) \(time) GMT"
}

private func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

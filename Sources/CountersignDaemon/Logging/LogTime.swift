// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A moment in UTC, by the millisecond.
struct LogTime: Equatable, Sendable {
    /// Milliseconds since 1970.
    var milliseconds: Int64

    /// Now, by the machine's clock.
    static var now: LogTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return LogTime(milliseconds: Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000)
    }

    /// The moment as RFC 3339 writes it: `2026-11-21T16:23:39.123Z`.
    var text: String {
        let (days, rest) = milliseconds.flooredDivision(by: 86_400_000)
        let date = Self.civil(daysSince1970: days)
        let (year, month, day) = (padded(date.year, 4), padded(date.month, 2), padded(date.day, 2))
        let (hour, minute) = (padded(rest / 3_600_000, 2), padded(rest / 60_000 % 60, 2))
        let (second, fraction) = (padded(rest / 1000 % 60, 2), padded(rest % 1000, 3))
        return "\(year)-\(month)-\(day)T\(hour):\(minute):\(second).\(fraction)Z"
    }

    /// The same to the second, as access logs write it: `21/Nov/2026:16:23:39 +0000`.
    var commonText: String {
        let (days, rest) = milliseconds.flooredDivision(by: 86_400_000)
        let date = Self.civil(daysSince1970: days)
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let month = months[Int(max(1, min(date.month, 12))) - 1]
        let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60)
        return "\(padded(date.day, 2))/\(month)/\(padded(date.year, 4)):\(padded(hour, 2)):\(padded(minute, 2)):"
            + "\(padded(second, 2)) +0000"
    }

    /// Year, month and day of a day in the Gregorian calendar: Howard Hinnant's `civil_from_days`, which needs neither a
    /// table nor a lock, as gmtime_r does.
    private static func civil(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
        // Eras of 400 years, each beginning on the first of March, so that a leap day comes last in its year.
        let (era, dayOfEra) = (daysSince1970 + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shifted + 2) / 5 + 1
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

extension Int64 {
    /// Quotient and remainder with a remainder that is never negative.
    fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}

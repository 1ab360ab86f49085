// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Day of the proleptic Gregorian calendar, in UTC.
///
/// Arithmetic by Howard Hinnant's `civil_from_days`: eras of 400 years that begin in March, so that a leap day comes last in
/// its year. It needs neither a table nor a lock, as gmtime_r does.
package struct CivilDate: Sendable, Hashable {
    /// Astronomical year: 0 is the year before 1.
    package let year: Int64
    /// Month, 1 to 12.
    package let month: Int64
    /// Day of the month, 1 to 31.
    package let day: Int64

    /// Abbreviated English month names, January first.
    package static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Abbreviated English weekday names, Sunday first.
    package static let weekdayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]

    /// Years that a date can be made from: beyond them, milliseconds do not fit into 64 bits.
    private static let years: ClosedRange<Int64> = -292_000_000...292_000_000

    /// Days that 64 bits of milliseconds can represent; a number outside counts as the nearest inside.
    private static let days: ClosedRange<Int64> = -106_751_991_168...106_751_991_167

    /// Makes the date of that year, month and day; `nil` if the calendar has no such day.
    package init?(year: Int64, month: Int64, day: Int64) {
        guard Self.years.contains(year), (1...12).contains(month), day >= 1,
            day <= Self.length(ofMonth: month, year: year)
        else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// Makes the date that many days after 1 January 1970, or before if the number is negative.
    package init(daysSince1970 days: Int64) {
        let (era, dayOfEra) = (min(max(days, Self.days.lowerBound), Self.days.upperBound) + 719_468)
            .flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1 January 1970, negative before it.
    package var daysSince1970: Int64 {
        let yearFromMarch = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = yearFromMarch.flooredDivision(by: 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Day of the week; 0 is Sunday.
    package var weekday: Int64 { (daysSince1970 + 4).flooredDivision(by: 7).remainder }

    private static func length(ofMonth month: Int64, year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

extension Int64 {
    /// Returns quotient and remainder; the remainder is never negative. The divisor must be positive.
    package func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

/// Time in UTC as people write it: date, time of day, milliseconds.
package struct CivilTime: Sendable, Hashable {
    /// Day.
    package let date: CivilDate
    /// Hour, 0 to 23.
    package let hour: Int64
    /// Minute, 0 to 59.
    package let minute: Int64
    /// Second, 0 to 60; 60 only in a leap second from an external source.
    package let second: Int64
    /// Millisecond, 0 to 999.
    package let millisecond: Int64

    /// Makes the time that many milliseconds after the beginning of 1970, or before if the number is negative.
    package init(millisecondsSince1970 milliseconds: Int64) {
        let (days, rest) = milliseconds.flooredDivision(by: 86_400_000)
        date = CivilDate(daysSince1970: days)
        (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60)
        (second, millisecond) = (rest / 1000 % 60, rest % 1000)
    }

    /// Makes the time of a date and a time of day; `nil` if the time of day is invalid.
    package init?(date: CivilDate, hour: Int64, minute: Int64, second: Int64, millisecond: Int64 = 0) {
        guard (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second),
            (0...999).contains(millisecond)
        else { return nil }
        self.date = date
        (self.hour, self.minute, self.second, self.millisecond) = (hour, minute, second, millisecond)
    }

    /// Milliseconds since 1970, negative before it; a leap second counts as the one after it.
    package var millisecondsSince1970: Int64 {
        let ofDay = (hour * 3_600 + minute * 60 + second) * 1000 + millisecond
        return date.daysSince1970.saturatingMultiply(86_400_000).saturatingAdd(ofDay)
    }
}

extension CivilTime {
    /// The time as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
    package var httpDate: String {
        let day = "\(CivilDate.weekdayNames[Int(date.weekday)]), \(date.day.padded(to: 2))"
        let month = "\(CivilDate.monthNames[Int(date.month - 1)]) \(date.year.padded(to: 4))"
        return "\(day) \(month) \(clock) GMT"
    }

    /// The time as RFC 3339 writes it, in UTC: `1994-11-06T08:49:37Z` (§5.6).
    package var internetDate: String { "\(day)T\(clock)Z" }

    /// The time as RFC 3339 writes it, with milliseconds: `1994-11-06T08:49:37.000Z`.
    package var internetDateWithMilliseconds: String { "\(day)T\(clock).\(millisecond.padded(to: 3))Z" }

    private var day: String { "\(date.year.padded(to: 4))-\(date.month.padded(to: 2))-\(date.day.padded(to: 2))" }

    private var clock: String { "\(hour.padded(to: 2)):\(minute.padded(to: 2)):\(second.padded(to: 2))" }
}

extension Int64 {
    /// Returns decimal digits, with leading zeros up to `width`: `7` is `07` for a width of 2.
    package func padded(to width: Int) -> String {
        let digits = String(self)
        return String(repeating: "0", count: Swift.max(0, width - digits.utf8.count)) + digits
    }
}

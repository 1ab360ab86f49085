// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

/// Moments as texts. A moment is a number of milliseconds since 1970; there is no clock here.
package enum Moment {
    /// `2026-11-21 16:30:05 UTC`, for messages.
    package static func text(_ milliseconds: Int64) -> String {
        let seconds = floorDivided(milliseconds, by: 1000)
        let days = floorDivided(seconds, by: 86400)
        let time = seconds - days * 86400
        let (year, month, day) = civil(days)
        return "\(year)-\(two(month))-\(two(day)) \(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) UTC"
    }

    /// When a `Retry-After` field allows another try (RFC 9110 §10.2.3: seconds or a date), `nil` where there is none
    /// that can be read. A wait is at most 30 days: beyond that a server's clock is wrong.
    package static func retry(after fields: HTTPFields, now: Int64) -> Int64? {
        guard let value = fields[.retryAfter] else { return nil }
        let latest = now.addingReportingOverflow(30 * 86_400_000)
        guard !latest.overflow else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
            // Digits that do not fit are a wait without end.
            let seconds = min(Int64(value) ?? .max, 30 * 86400)
            return now + seconds * 1000
        }
        return httpDate(value).map { min(max($0, now), latest.partialValue) }
    }

    /// The moment that an HTTP-date means, in any of the three forms (RFC 9110 §5.6.7); `nil` where it is none.
    package static func httpDate(_ text: String) -> Int64? {
        let words = text.split(separator: " ")
        // Sun, 06 Nov 1994 08:49:37 GMT
        if words.count == 6, words[5] == "GMT" {
            return moment(day: words[1], month: words[2], year: words[3], time: words[4])
        }
        // Sunday, 06-Nov-94 08:49:37 GMT
        if words.count == 4, words[3] == "GMT" {
            let date = words[1].split(separator: "-")
            guard date.count == 3, date[2].utf8.count == 2, let year = number(date[2]) else { return nil }
            // RFC 9110 has two digits mean the past where they would be over 50 years ahead; there is no clock here, so
            // the usual pivot of POSIX stands in.
            return moment(
                day: date[0], month: date[1], year: "\(year < 69 ? 2000 + year : 1900 + year)", time: words[2])
        }
        // Sun Nov  6 08:49:37 1994
        if words.count == 5 { return moment(day: words[2], month: words[1], year: words[4], time: words[3]) }
        return nil
    }

    /// The moment of a day and time of UTC; `nil` where the calendar has no such day. Years of four digits, and a time
    /// that its caller has looked at.
    package static func at(
        year: Int64, month: Int64, day: Int64, hours: Int64, minutes: Int64, seconds: Int64
    ) -> Int64? {
        guard (1...9999).contains(year), (1...12).contains(month), (1...31).contains(day), (0...23).contains(hours),
            (0...59).contains(minutes), (0...60).contains(seconds)
        else { return nil }
        let days = days(year, month, day)
        guard civil(days) == (year, month, day) else { return nil }
        return (days * 86400 + hours * 3600 + minutes * 60 + seconds) * 1000
    }

    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func moment(
        day: some StringProtocol, month: some StringProtocol, year: some StringProtocol, time: some StringProtocol
    ) -> Int64? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let day = number(day), (1...31).contains(day), year.utf8.count == 4, let year = number(year),
            let month = months.firstIndex(of: String(month)), clock.count == 3,
            let hours = number(clock[0]), hours < 24, let minutes = number(clock[1]), minutes < 60,
            let seconds = number(clock[2]), seconds <= 60
        else { return nil }
        return (days(year, Int64(month) + 1, day) * 86400 + hours * 3600 + minutes * 60 + seconds) * 1000
    }

    private static func number(_ digits: some StringProtocol) -> Int64? {
        guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            return nil
        }
        return Int64(digits)
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func floorDivided(_ number: Int64, by divisor: Int64) -> Int64 {
        number / divisor - (number % divisor < 0 ? 1 : 0)
    }

    /// Days since 1970 of a day of the Gregorian calendar, by eras of 400 years that begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = floorDivided(year, by: 400)
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The inverse of `days`.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivided(shifted, by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthIndex = (5 * dayOfYear + 2) / 153
        let month = monthIndex < 10 ? monthIndex + 3 : monthIndex - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthIndex + 2) / 5 + 1)
    }
}

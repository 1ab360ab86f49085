// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import HTTPTypes

/// Times as texts. A time is a number of milliseconds since 1970; there is no clock here.
package enum Moment {
    /// `2026-11-21 16:30:05 UTC`, for messages.
    package static func text(_ milliseconds: Int64) -> String {
        let time = CivilTime(millisecondsSince1970: milliseconds)
        let (month, day) = (time.date.month.padded(to: 2), time.date.day.padded(to: 2))
        let (hour, minute, second) = (time.hour.padded(to: 2), time.minute.padded(to: 2), time.second.padded(to: 2))
        return "\(time.date.year)-\(month)-\(day) \(hour):\(minute):\(second) UTC"
    }

    /// Returns the time of the next attempt by `Retry-After` (RFC 9110 §10.2.3: seconds or a date). Nil if the field is
    /// missing or malformed. The wait is at most 30 days: a longer one means that the server's clock is wrong.
    package static func retry(after fields: HTTPFields, now: Int64) -> Int64? {
        guard let value = fields[.retryAfter] else { return nil }
        let latest = now.addingReportingOverflow(30 * 86_400_000)
        guard !latest.overflow else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy(\.isDigit) {
            // On overflow, wait the maximum.
            let seconds = min(Int64(value) ?? .max, 30 * 86400)
            return now + seconds * 1000
        }
        return httpDate(value).map { min(max($0, now), latest.partialValue) }
    }

    /// Parses an HTTP-date in any of its three forms (RFC 9110 §5.6.7). Nil if malformed.
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
            // By RFC 9110, two digits mean the past if they would be over 50 years in the future. There is no clock
            // here, so the usual pivot of POSIX is used.
            return moment(
                day: date[0], month: date[1], year: "\(year < 69 ? 2000 + year : 1900 + year)", time: words[2])
        }
        // Sun Nov  6 08:49:37 1994
        if words.count == 5 { return moment(day: words[2], month: words[1], year: words[4], time: words[3]) }
        return nil
    }

    /// Returns the time of a day and time in UTC; `nil` if the calendar has no such day. The year has four digits, and
    /// the caller has checked the time of day.
    package static func at(
        year: Int64, month: Int64, day: Int64, hours: Int64, minutes: Int64, seconds: Int64
    ) -> Int64? {
        guard (1...9999).contains(year), let date = CivilDate(year: year, month: month, day: day) else { return nil }
        return CivilTime(date: date, hour: hours, minute: minutes, second: seconds)?.millisecondsSince1970
    }

    private static func moment(
        day: some StringProtocol, month: some StringProtocol, year: some StringProtocol, time: some StringProtocol
    ) -> Int64? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false)
        guard let day = number(day), year.utf8.count == 4, let year = number(year),
            let month = CivilDate.monthNames.firstIndex(of: String(month)), clock.count == 3,
            let hour = number(clock[0]), let minute = number(clock[1]), let second = number(clock[2]),
            let date = CivilDate(year: year, month: Int64(month) + 1, day: day)
        else { return nil }
        return CivilTime(date: date, hour: hour, minute: minute, second: second)?.millisecondsSince1970
    }

    private static func number(_ digits: some StringProtocol) -> Int64? {
        guard (1...4).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit) else {
            return nil
        }
        return Int64(digits)
    }
}

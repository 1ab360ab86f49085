// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The one form of dates that is written, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7).
public enum HTTPDate {
    /// Appends the date that many seconds after 1970 began; outside the years 1970 to 9999 the nearest date inside.
    public static func append(secondsSince1970 seconds: Int64, to queue: inout ByteQueue) {
        let inside = min(max(seconds, 0), 253_402_300_799)
        let days = inside / 86_400
        let second = inside % 86_400
        let (year, month, day) = civil(days: days)
        queue.append(name(days + 4, of: "SunMonTueWedThuFriSat", count: 7))
        queue.append(", ")
        pair(day, to: &queue)
        queue.append(.space)
        queue.append(name(month - 1, of: "JanFebMarAprMayJunJulAugSepOctNovDec", count: 12))
        queue.append(.space)
        pair(year / 100, to: &queue)
        pair(year % 100, to: &queue)
        queue.append(.space)
        pair(second / 3_600, to: &queue)
        queue.append(UInt8(ascii: ":"))
        pair(second / 60 % 60, to: &queue)
        queue.append(UInt8(ascii: ":"))
        pair(second % 60, to: &queue)
        queue.append(" GMT")
    }

    /// Year, month and day of a day counted from 1970, in eras of 400 years that start in March, so that the leap day
    /// comes last.
    private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let fromMarch = (5 * dayOfYear + 2) / 153
        let month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * fromMarch + 2) / 5 + 1)
    }

    private static func name(_ index: Int64, of names: String, count: Int64) -> Substring.UTF8View {
        let start = names.utf8.index(names.utf8.startIndex, offsetBy: Int(index % count) * 3)
        return names[start...].utf8.prefix(3)
    }

    private static func pair(_ value: Int64, to queue: inout ByteQueue) {
        queue.append(UInt8(truncatingIfNeeded: 48 + value / 10))
        queue.append(UInt8(truncatingIfNeeded: 48 + value % 10))
    }
}

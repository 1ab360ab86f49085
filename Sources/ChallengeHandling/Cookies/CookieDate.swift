// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The dates in `Expires`, which are read far more kindly than those of HTTP (RFC 6265 section 5.1.1).
enum CookieDate {
    /// The moment in milliseconds since 1970; `nil` where the text is no date.
    static func moment(_ text: String) -> Int64? {
        var time: (hours: Int64, minutes: Int64, seconds: Int64)?
        var day: Int64?
        var month: Int64?
        var year: Int64?
        for token in text.utf8.split(whereSeparator: isDelimiter) {
            if time == nil, let found = Self.time(token) {
                time = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = Self.month(token) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        guard year >= 1601, time.hours <= 23, time.minutes <= 59, time.seconds <= 59 else { return nil }
        return Moment.at(
            year: year, month: month, day: day, hours: time.hours, minutes: time.minutes, seconds: time.seconds)
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// The digits that a token begins with, if there are so many and no more.
    private static func number(_ token: Substring.UTF8View, digits: ClosedRange<Int>) -> Int64? {
        let leading = token.prefix { $0 >= 0x30 && $0 <= 0x39 }
        return digits.contains(leading.count) ? Int64(Substring(leading)) : nil
    }

    private static func time(_ token: Substring.UTF8View) -> (hours: Int64, minutes: Int64, seconds: Int64)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count <= 2, parts[1].count <= 2, let hours = number(parts[0], digits: 1...2),
            let minutes = number(parts[1], digits: 1...2), let seconds = number(parts[2], digits: 1...2),
            parts[0].count == digitCount(parts[0]), parts[1].count == digitCount(parts[1])
        else { return nil }
        return (hours, minutes, seconds)
    }

    private static func digitCount(_ text: Substring.UTF8View) -> Int { text.prefix { $0 >= 0x30 && $0 <= 0x39 }.count }

    private static func month(_ token: Substring.UTF8View) -> Int64? {
        months.firstIndex(of: Substring(token.prefix(3)).lowercased()).map { Int64($0) + 1 }
    }
}

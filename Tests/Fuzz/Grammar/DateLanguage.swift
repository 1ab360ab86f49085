// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// Dates of HTTP in their three forms (RFC 9110 §5.6.7), from days that are counted here.
struct DateLanguage: Language {
    static let name = "dates"
    static let target = "values"

    var sentence = Sentence()
    private var expected: Int64 = 0
    private var isBroken = false

    mutating func write() {
        sentence.put("d")
        let form = sentence.choices.below(3)
        var year = form == 1 ? 1969 + sentence.choices.below(100) : 1 + sentence.choices.below(9_999)
        var month = 1 + sentence.choices.below(12)
        var day = 1 + sentence.choices.below(Self.length(of: month, in: year))
        var (hour, minute, second) = (
            sentence.choices.below(24), sentence.choices.below(60), sentence.choices.below(60)
        )
        if sentence.choices.once(in: 16) { second = 60 }
        expected = (Self.days(year, month, day) * 86_400 + Int64(hour * 3_600 + minute * 60 + second)) * 1_000
        isBroken = sentence.choices.once(in: 4)
        let fault = isBroken ? sentence.choices.below(10) : -1
        switch fault {
        case 0: day = Self.length(of: month, in: year) + 1
        case 1: hour = 24
        case 2: minute = 60
        case 3: second = 61
        case 4: day = 0
        case 5:
            // The year is one of those hundreds that have no leap day.
            guard form != 1 else { day = 32; break }
            (year, month, day) = ([1900, 2100, 1700][sentence.choices.below(3)], 2, 29)
        default: break
        }
        let name = fault == 6 ? sentence.choices.pick(Self.brokenMonths) : Self.months[month - 1]
        let clock = fault == 7 ? sentence.choices.pick(Self.brokenTimes) : nil
        let zone: StaticString = fault == 8 ? sentence.choices.pick(Self.brokenZones) : "GMT"
        let weekday = sentence.choices.pick(Self.weekdays)
        switch form {
        case 0:
            sentence.put(weekday.0)
            sentence.put(", ")
            put(day, 2)
            sentence.put(" ")
            sentence.put(name)
            sentence.put(" ")
            put(year, 4)
            sentence.put(" ")
            putTime(hour, minute, second, clock)
            sentence.put(" ")
            sentence.put(zone)
        case 1:
            sentence.put(weekday.1)
            sentence.put(", ")
            put(day, 2)
            sentence.put("-")
            sentence.put(name)
            sentence.put("-")
            put(year % 100, 2)
            sentence.put(" ")
            putTime(hour, minute, second, clock)
            sentence.put(" ")
            sentence.put(zone)
        default:
            sentence.put(weekday.0)
            sentence.put(" ")
            sentence.put(name)
            sentence.put(" ")
            if day < 10 { sentence.put(" ") }
            put(day, 1)
            sentence.put(" ")
            putTime(hour, minute, second, clock)
            sentence.put(" ")
            put(year, 4)
            if fault == 8 { sentence.put(" GMT") }
        }
        if fault == 9 { sentence.put(" x") }
    }

    private mutating func putTime(_ hour: Int, _ minute: Int, _ second: Int, _ broken: StaticString?) {
        if let broken { return sentence.put(broken) }
        put(hour, 2)
        sentence.put(":")
        put(minute, 2)
        sentence.put(":")
        put(second, 2)
    }

    private mutating func put(_ number: Int, _ width: Int) {
        var limit = 10
        for _ in 1..<max(width, 1) {
            if number < limit { sentence.put(0x30) }
            limit *= 10
        }
        sentence.put(UInt64(number))
    }

    func check() throws(Violation) {
        let text = String(decoding: sentence.bytes.dropFirst(), as: UTF8.self)
        let found = Moment.httpDate(text)
        if isBroken { return try require(found == nil, "what is no date is read as \(found ?? 0)") }
        try require(found == expected, "\(text) is read as \(found ?? 0), not \(expected)")
    }

    // MARK: The calendar, counted

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && year % 100 != 0 || year % 400 == 0 }

    private static func length(of month: Int, in year: Int) -> Int {
        month == 2 && isLeap(year) ? 29 : [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    }

    /// Days since 1970 began.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
        let before = year - 1
        var days = before * 365 + before / 4 - before / 100 + before / 400 - 719_162
        for earlier in 1..<month { days += length(of: earlier, in: year) }
        return Int64(days + day - 1)
    }

    private static let months: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let weekdays: [(StaticString, StaticString)] = [
        ("Sun", "Sunday"), ("Mon", "Monday"), ("Tue", "Tuesday"), ("Wed", "Wednesday"), ("Thu", "Thursday"),
        ("Fri", "Friday"), ("Sat", "Saturday"),
    ]
    private static let brokenMonths: [StaticString] = ["JAN", "jan", "Jany", "13", "J", "\u{E9}", "Mai"]
    private static let brokenTimes: [StaticString] = [
        "00:00", "0:0:0:0", "12.00.00", "-1:00:00", "+1:00:00", "::", "1a:00:00", "00:00:00Z", "\u{661}:00:00",
        "00000:00:00",
    ]
    private static let brokenZones: [StaticString] = ["UTC", "gmt", "+0000", "CET", "Z"]
}

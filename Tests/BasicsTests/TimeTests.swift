// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

@Suite("Calendar")
struct CivilDateTests {
    @Test(
        "a number of days and its date are converted into each other",
        arguments: [
            (0, (1970, 1, 1)), (-1, (1969, 12, 31)), (-365, (1969, 1, 1)), (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)), (47_540, (2100, 2, 28)), (47_541, (2100, 3, 1)), (2_932_896, (9999, 12, 31)),
            (2_932_897, (10_000, 1, 1)), (-719_162, (1, 1, 1)), (-719_163, (0, 12, 31)), (-719_528, (0, 1, 1)),
            (-719_469, (0, 2, 29)), (-719_529, (-1, 12, 31)),
        ] as [(Int64, (Int64, Int64, Int64))])
    func conversion(days: Int64, fields: (Int64, Int64, Int64)) throws {
        let date = try #require(CivilDate(year: fields.0, month: fields.1, day: fields.2))
        #expect(date.daysSince1970 == days)
        #expect(CivilDate(daysSince1970: days) == date)
    }

    @Test("each day of four centuries follows the day before it")
    func succession() throws {
        var previous = try #require(CivilDate(year: 1899, month: 12, day: 31))
        for days in previous.daysSince1970 + 1...previous.daysSince1970 + 146_097 {
            let date = CivilDate(daysSince1970: days)
            let isNextDay = (date.year, date.month, date.day) == (previous.year, previous.month, previous.day + 1)
            let isNextMonth = (date.year, date.month, date.day) == (previous.year, previous.month + 1, 1)
            let isNextYear = (date.year, date.month, date.day) == (previous.year + 1, 1, 1)
            try #require(isNextDay || isNextMonth || isNextYear)
            try #require(CivilDate(year: date.year, month: date.month, day: date.day) == date)
            try #require(date.daysSince1970 == days && date.weekday == (previous.weekday + 1) % 7)
            previous = date
        }
    }

    @Test(
        "a day that the calendar does not have is refused",
        arguments: [
            (1900, 2, 29), (2100, 2, 29), (2001, 2, 29), (2000, 2, 30), (2000, 4, 31), (2000, 13, 1), (2000, 0, 1),
            (2000, 1, 0), (2000, 1, 32), (2000, 1, -1), (.max, 1, 1), (.min, 1, 1), (2000, .max, 1), (2000, 1, .max),
        ] as [(Int64, Int64, Int64)])
    func impossible(year: Int64, month: Int64, day: Int64) {
        #expect(CivilDate(year: year, month: month, day: day) == nil)
    }

    @Test("a number of days beyond 64 bits of milliseconds counts as the nearest that fits")
    func clamped() {
        #expect(CivilDate(daysSince1970: .max) == CivilDate(daysSince1970: 106_751_991_167))
        #expect(CivilDate(daysSince1970: .min) == CivilDate(daysSince1970: -106_751_991_168))
    }

    @Test("weekdays count from Sunday, before 1970 as well")
    func weekdays() {
        #expect(CivilDate.weekdayNames[Int(CivilDate(daysSince1970: 0).weekday)] == "Thu")
        #expect(CivilDate.weekdayNames[Int(CivilDate(daysSince1970: -5).weekday)] == "Sat")
        #expect(CivilDate.weekdayNames[Int(CivilDate(daysSince1970: 9075).weekday)] == "Sun")
    }
}

@Suite("Times of day")
struct CivilTimeTests {
    @Test(
        "milliseconds since 1970 and their date and time are converted into each other",
        arguments: [
            (0, (0, 0, 0, 0), 0), (-1, (23, 59, 59, 999), -1), (784_111_777_999, (8, 49, 37, 999), 9075),
            (951_825_599_999, (11, 59, 59, 999), 11_016), (253_402_300_799_000, (23, 59, 59, 0), 2_932_896),
        ] as [(Int64, (Int64, Int64, Int64, Int64), Int64)])
    func conversion(moment: Int64, fields: (Int64, Int64, Int64, Int64), days: Int64) {
        let time = CivilTime(millisecondsSince1970: moment)
        #expect((time.hour, time.minute, time.second, time.millisecond) == fields)
        #expect(time.date == CivilDate(daysSince1970: days))
        #expect(time.millisecondsSince1970 == moment)
    }

    @Test("a time of day that no clock shows is refused, a leap second is not")
    func impossible() {
        let date = CivilDate(daysSince1970: 0)
        #expect(CivilTime(date: date, hour: 24, minute: 0, second: 0) == nil)
        #expect(CivilTime(date: date, hour: -1, minute: 0, second: 0) == nil)
        #expect(CivilTime(date: date, hour: 0, minute: 60, second: 0) == nil)
        #expect(CivilTime(date: date, hour: 0, minute: 0, second: 61) == nil)
        #expect(CivilTime(date: date, hour: 0, minute: 0, second: 0, millisecond: 1000) == nil)
        #expect(CivilTime(date: date, hour: 23, minute: 59, second: 60)?.millisecondsSince1970 == 86_400_000)
    }

    @Test("the first and the last moment of 64 bits have a date", arguments: [Int64.min, .max])
    func extremes(moment: Int64) {
        let time = CivilTime(millisecondsSince1970: moment)
        #expect(time.date.year == (moment < 0 ? -292_275_055 : 292_278_994))
        #expect((1...12).contains(time.date.month) && (0...23).contains(time.hour))
        #expect(time.date.daysSince1970 == moment.flooredDivision(by: 86_400_000).quotient)
    }

    @Test("numbers are padded with zeros and never cut")
    func padding() {
        #expect(Int64(7).padded(to: 2) == "07" && Int64(123).padded(to: 2) == "123" && Int64(0).padded(to: 3) == "000")
    }
}

@Suite("Durations and sums")
struct DurationTests {
    @Test(
        "a duration in milliseconds is cut toward zero, and rounded up for limits",
        arguments: [
            (.zero, 0, 0), (.milliseconds(1), 1, 1), (.microseconds(1), 0, 1), (.microseconds(1001), 1, 2),
            (.nanoseconds(999_999_999), 999, 1000), (.microseconds(-1500), -1, 0), (.seconds(-2), -2000, 0),
            (.seconds(Int64.max), .max, .max), (.seconds(Int64.min), .min, 0),
            (.milliseconds(Int64.max), .max, .max),
        ] as [(Duration, Int64, Int64)])
    func milliseconds(duration: Duration, whole: Int64, roundedUp: Int64) {
        #expect(duration.milliseconds == whole)
        #expect(duration.millisecondsRoundedUp == roundedUp)
    }

    @Test(
        "a duration in nanoseconds is at least 0 and at most what fits",
        arguments: [
            (.zero, 0), (.nanoseconds(7), 7), (.seconds(2) + .nanoseconds(1), 2_000_000_001), (.nanoseconds(-1), 0),
            (.seconds(-1), 0), (.seconds(Int64.max), .max), (.seconds(18_446_744_073), 18_446_744_073_000_000_000),
            (.seconds(18_446_744_073) + .milliseconds(999), .max),
        ] as [(Duration, UInt64)])
    func nanoseconds(duration: Duration, whole: UInt64) {
        #expect(duration.nanoseconds == whole)
    }

    @Test("sums, differences and products that do not fit are the nearest number that does")
    func saturation() {
        #expect(Int64.max.saturatingAdd(1) == .max && Int64.min.saturatingAdd(-1) == .min)
        #expect(Int64(-1).saturatingAdd(.max) == .max - 1 && Int64(2).saturatingAdd(3) == 5)
        #expect(Int64.min.saturatingSubtract(1) == .min && Int64.max.saturatingSubtract(-1) == .max)
        #expect(Int64(0).saturatingSubtract(.min) == .max && Int64(2).saturatingSubtract(3) == -1)
        #expect(Int64.max.saturatingMultiply(2) == .max && Int64.max.saturatingMultiply(-2) == .min)
        #expect(Int64.min.saturatingMultiply(-1) == .max && Int64(-3).saturatingMultiply(4) == -12)
    }
}

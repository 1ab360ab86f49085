// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Time of a signature: `20130524T000000Z`.
struct AWSTime: Equatable {
    /// Day: `20130524`.
    let day: String
    /// Day and time, in UTC.
    let text: String

    /// Creates the time of `milliseconds` since 1970.
    init(_ milliseconds: Int64) {
        let time = CivilTime(millisecondsSince1970: milliseconds)
        day = "\(time.date.year.padded(to: 4))\(time.date.month.padded(to: 2))\(time.date.day.padded(to: 2))"
        text = "\(day)T\(time.hour.padded(to: 2))\(time.minute.padded(to: 2))\(time.second.padded(to: 2))Z"
    }

    /// Returns the milliseconds since 1970 of `2013-05-24T00:00:00Z`, with or without a fraction of the second (RFC 3339 §5.6).
    static func moment(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 32, bytes.last == UInt8(ascii: "Z"), bytes[4] == UInt8(ascii: "-"),
            bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"), bytes[13] == UInt8(ascii: ":"),
            bytes[16] == UInt8(ascii: ":"),
            let year = number(bytes[0..<4]), let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
            let hours = number(bytes[11..<13]), let minutes = number(bytes[14..<16]),
            let seconds = number(bytes[17..<19])
        else { return nil }
        let fraction = bytes[19..<(bytes.count - 1)]
        guard fraction.isEmpty || fraction.first == UInt8(ascii: ".") && fraction.dropFirst().allSatisfy(\.isDigit)
        else {
            return nil
        }
        return Moment.at(year: year, month: month, day: day, hours: hours, minutes: minutes, seconds: seconds)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.allSatisfy(\.isDigit) ? Int64(String(decoding: digits, as: UTF8.self)) : nil
    }
}

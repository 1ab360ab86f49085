// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Synchronization

/// Difference between the server's clock and this machine's, learned from a response that refuses a signature's time, and the
/// last time at which a key was called expired.
///
/// Shared by all workers; kept until the configuration is loaded again.
final class AWSClock: Sendable {
    /// Differences below this, in milliseconds, are delays.
    private static let tolerance: Int64 = 30_000

    /// Time in which a key is not renewed again although the server calls it expired, in milliseconds.
    private static let renewalPause: Int64 = 60_000

    private let known = Atomic<Int64>(0)
    private let renewedAt = Atomic<Int64>(.min)

    init() {}

    /// Milliseconds by which the server's clock is ahead of this machine's; negative if it is behind.
    var difference: Int64 { known.load(ordering: .relaxed) }

    /// Server's clock minus this machine's, in milliseconds.
    func serverTime(at now: Int64) -> Int64 { now.saturatingAdd(difference) }

    /// Takes the server's time from the `Date` of `response`. Returns false if the difference was known already, or
    /// `Date` is missing.
    func learn(from response: ExaminedResponse, now: Int64) -> Bool {
        guard let date = response.fields[.date].flatMap(Moment.httpDate) else { return false }
        let found = date.saturatingSubtract(now)
        let next = found.magnitude >= Self.tolerance.magnitude ? found : 0
        let before = known.exchange(next, ordering: .relaxed)
        return next.saturatingSubtract(before).magnitude >= Self.tolerance.magnitude
    }

    /// Records that the server calls a key expired. Returns the earliest time of another key if one was obtained just now.
    func keyExpired(at now: Int64) -> Int64? {
        let next = renewedAt.load(ordering: .relaxed).saturatingAdd(Self.renewalPause)
        guard now >= next else { return next }
        renewedAt.store(now, ordering: .relaxed)
        return nil
    }
}

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

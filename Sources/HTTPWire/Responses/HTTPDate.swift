// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The one form of dates that is written, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 section 5.6.7).
public enum HTTPDate {
    /// Appends the date that many seconds after 1970 began; outside the years 1970 to 9999 the nearest date inside.
    public static func append(secondsSince1970 seconds: Int64, to queue: inout ByteQueue) {
        let time = CivilTime(millisecondsSince1970: min(max(seconds, 0), 253_402_300_799) * 1000)
        let date = time.date
        queue.append(CivilDate.weekdayNames[Int(date.weekday)])
        queue.append(", ")
        pair(date.day, to: &queue)
        queue.append(.space)
        queue.append(CivilDate.monthNames[Int(date.month - 1)])
        queue.append(.space)
        pair(date.year / 100, to: &queue)
        pair(date.year % 100, to: &queue)
        queue.append(.space)
        pair(time.hour, to: &queue)
        queue.append(UInt8(ascii: ":"))
        pair(time.minute, to: &queue)
        queue.append(UInt8(ascii: ":"))
        pair(time.second, to: &queue)
        queue.append(" GMT")
    }

    private static func pair(_ value: Int64, to queue: inout ByteQueue) {
        queue.append(UInt8(truncatingIfNeeded: 48 + value / 10))
        queue.append(UInt8(truncatingIfNeeded: 48 + value % 10))
    }
}

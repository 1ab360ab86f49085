// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The only form of dates that is written, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
public enum HTTPDate {
    /// Appends the date that many seconds after the beginning of 1970; outside the years 1970 to 9999 the nearest date
    /// inside.
    public static func append(secondsSince1970 seconds: Int64, to queue: inout ByteQueue) {
        queue.append(CivilTime(millisecondsSince1970: min(max(seconds, 0), 253_402_300_799) * 1000).httpDate)
    }
}

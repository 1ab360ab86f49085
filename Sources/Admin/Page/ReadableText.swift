// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

// Numbers and times in the units that people read.

/// Returns a time from milliseconds: "850 ms", "4.2 s", "3 min", "2 h 5 min", "6 days 4 h", "14 days".
package func readableTime(milliseconds: Int64) -> String {
    switch milliseconds {
    case ..<1000: "\(max(0, milliseconds)) ms"
    case ..<10_000: "\(milliseconds / 1000)\(fraction(milliseconds % 1000 / 100)) s"
    case ..<120_000: "\(milliseconds / 1000) s"
    case ..<7_200_000: "\(milliseconds / 60_000) min"
    case ..<172_800_000: readableTime(milliseconds / 3_600_000, "h", milliseconds / 60_000 % 60, "min")
    case ..<864_000_000: readableTime(milliseconds / 86_400_000, "days", milliseconds / 3_600_000 % 24, "h")
    default: "\(milliseconds / 86_400_000 + (milliseconds % 86_400_000 < 43_200_000 ? 0 : 1)) days"
    }
}

private func readableTime(_ most: Int64, _ unit: String, _ rest: Int64, _ smaller: String) -> String {
    rest == 0 ? "\(most) \(unit)" : "\(most) \(unit) \(rest) \(smaller)"
}

/// Returns the age of a moment, both in milliseconds since 1970: "3 min ago".
func readableAge(of moment: Int64, now: Int64) -> String {
    "\(readableTime(milliseconds: now.saturatingSubtract(moment))) ago"
}

/// Returns a time from microseconds: "512 µs", "8.2 ms", "131 ms", "8.4 s".
func readableTime(microseconds: UInt64) -> String {
    switch microseconds {
    case ..<1000: "\(microseconds) µs"
    case ..<1_000_000: "\(readableNumber(tenths: microseconds / 100)) ms"
    default: "\(readableNumber(tenths: microseconds / 100_000)) s"
    }
}

/// Returns a number of bytes: "512 B", "1.2 MB", "28 MB".
func readableSize(bytes: UInt64) -> String {
    guard bytes >= 1000 else { return "\(bytes) B" }
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"]
    var (tenths, unit) = (bytes / 100, 0)
    while tenths >= 10_000, unit < units.count - 1 {
        tenths /= 1000
        unit += 1
    }
    return "\(readableNumber(tenths: tenths)) \(units[unit])"
}

/// Returns a number of events per second: "0.4", "7.5", "1 234".
func readableRate(_ rate: Double) -> String {
    readableNumber(tenths: UInt64(exactly: (min(max(0, rate), 1e15) * 10).rounded()) ?? 0)
}

/// Returns a number in groups of three digits.
func readableNumber(_ number: UInt64) -> String {
    let digits = Array(String(number))
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
        text.append(digit)
    }
    return text
}

/// Returns a number from its tenths, with one decimal below 10 unless that is a zero.
private func readableNumber(tenths: UInt64) -> String {
    tenths < 100 ? "\(tenths / 10)\(fraction(Int64(tenths % 10)))" : readableNumber(tenths / 10)
}

private func fraction(_ tenth: Int64) -> String { tenth == 0 ? "" : ".\(tenth)" }

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Sums of times and durations that come from peers and files. The plain operators end the process on overflow.
extension Int64 {
    /// The sum, or the nearest number that fits.
    package func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    /// The difference, or the nearest number that fits.
    package func saturatingSubtract(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }

    /// The product, or the nearest number that fits.
    package func saturatingMultiply(_ other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
    }
}

/// Durations as whole numbers, which saturate: a peer or a file may contain any value.
extension Duration {
    /// Whole milliseconds, rounded toward zero, saturated to 64 bits.
    package var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let whole = seconds.multipliedReportingOverflow(by: 1000)
        guard !whole.overflow else { return seconds < 0 ? .min : .max }
        return whole.partialValue.saturatingAdd(attoseconds / 1_000_000_000_000_000)
    }

    /// Milliseconds rounded up, for limits: 0 if the duration is negative, saturated to 64 bits.
    package var millisecondsRoundedUp: Int64 {
        guard self > .zero else { return 0 }
        let whole = milliseconds
        return components.attoseconds % 1_000_000_000_000_000 == 0 ? whole : whole.saturatingAdd(1)
    }

    /// Whole nanoseconds: 0 if the duration is negative, saturated to 64 bits.
    package var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let whole = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let sum = whole.partialValue.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
        return whole.overflow || sum.overflow ? .max : sum.partialValue
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Sums of moments and durations that peers and files name. The plain operators end the process where a sum does not fit.
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A duration in the loop's own unit. Adding it to an instant is one addition, where a `Duration` takes divisions of
/// 128 bits: for time limits that every request sets.
public struct LoopDelay: Sendable, Hashable {
    /// Nanoseconds; so many that the deadline is never reached for a duration of centuries.
    public let nanoseconds: UInt64

    /// The same as `duration`; none where that is negative.
    public init(_ duration: Duration) {
        nanoseconds = (LoopInstant(nanoseconds: 0) + duration).nanoseconds
    }

    /// The moment `delay` after `instant`.
    public static func + (instant: LoopInstant, delay: LoopDelay) -> LoopInstant {
        instant.advanced(byNanoseconds: delay.nanoseconds)
    }
}

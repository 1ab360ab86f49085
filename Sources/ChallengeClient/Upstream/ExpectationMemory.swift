// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop

/// An upstream's habit of saying 100 where it is asked to (RFC 9110 §10.1.1). Where it has not done so lately it is not asked: it then costs
/// a wait now and then, and not one each time.
struct ExpectationMemory {
    /// The time in which it answers, in milliseconds: a little less than is waited.
    static let waitMilliseconds = 900
    /// The time for which an upstream that let the wait pass is not asked again.
    private static let ignoredTime = Duration.seconds(600)

    private var ignoredUntil = LoopInstant(nanoseconds: 0)

    /// True if a body that cannot be kept is to wait for the upstream's word, so that a challenge comes before it.
    func isHonored(at now: LoopInstant) -> Bool { now >= ignoredUntil }

    /// Notes the outcome of an expectation.
    mutating func note(isHonored: Bool, at now: LoopInstant) {
        ignoredUntil = isHonored ? now : now + Self.ignoredTime
    }
}

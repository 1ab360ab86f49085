// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop

/// A session's use that was refused at a route.
package struct RefusedUse: Hashable {
    let route: RouteKey
    let slot: Int
    let generation: UInt64

    /// A request there without the session.
    var withoutSession: RefusedUse { RefusedUse(route: route, slot: slot, generation: 0) }
}

/// Refusals of sessions just won: for 30 s they go to the caller as they came, without another login (CONTRIBUTING, rule 4).
struct RefusalMemory {
    private static let span = Duration.seconds(30)
    private static let most = 1_000
    private var until: [RefusedUse: LoopInstant] = [:]

    func contains(_ refusal: RefusedUse, now: LoopInstant) -> Bool {
        until[refusal].map { now < $0 } ?? false
    }

    var isEmpty: Bool { until.isEmpty }

    mutating func insert(_ refusal: RefusedUse, now: LoopInstant) {
        if until.count >= Self.most { until = until.filter { now < $0.value } }
        if until.count >= Self.most { until.removeAll() }
        until[refusal] = now + Self.span
    }
}

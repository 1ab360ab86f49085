// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// The scopes that resources of one upstream have named, shared by all workers: what one has learned by a refusal,
/// the others need not learn again.
///
/// A worker looks at `version` and takes the whole over only when that has moved.
package final class LearnedScopes: Sendable {
    /// The scope of the login in that slot of a route.
    struct Lesson: Sendable {
        let slot: Int
        let scope: Scope
    }

    private static let most = 1_000
    private let lessons = Mutex<(order: [RouteKey], byRoute: [RouteKey: Lesson])>(([], [:]))
    private let counter = Atomic<UInt64>(0)

    /// Nothing learned yet.
    package init() {}

    /// Moves with every lesson.
    var version: UInt64 { counter.load(ordering: .acquiring) }

    /// All that was learned.
    var all: [RouteKey: Lesson] { lessons.withLock { $0.byRoute } }

    /// A resource has named a scope. The oldest half goes where there are too many.
    func learn(_ lesson: Lesson, for route: RouteKey) {
        lessons.withLock { known in
            if known.byRoute.updateValue(lesson, forKey: route) == nil { known.order.append(route) }
            guard known.order.count > Self.most else { return }
            for old in known.order.prefix(Self.most / 2) { known.byRoute[old] = nil }
            known.order.removeFirst(Self.most / 2)
        }
        counter.wrappingAdd(1, ordering: .releasing)
    }
}

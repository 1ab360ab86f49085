// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import DemoUpstream
internal import Synchronization

/// The events upstream since the demonstration began, as far as it is remembered.
final class DemoEvents: Sendable {
    private let events = Mutex<[DemoEvent]>([])
    /// A demonstration that runs for weeks must not grow.
    private static let capacity = 1000

    func add(_ event: DemoEvent) {
        events.withLock { if $0.count < Self.capacity { $0.append(event) } }
    }

    func count(where matches: (DemoEvent) -> Bool) -> Int { events.withLock { $0.count(where: matches) } }

    /// Those that should not have happened.
    var mistakes: [DemoEvent] {
        events.withLock { events in
            events.filter { event in
                switch event {
                case .answerRejected, .checkFailed, .noRequest: true
                default: false
                }
            }
        }
    }
}

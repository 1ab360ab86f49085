// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Keys of kept sessions by the time at which their next login may begin.
///
/// A tick visits only those that are due.
struct SessionSchedule: Sendable {
    /// Present time of each key, in ms since 1970; `.max` for none.
    private var times: [SessionKey: Int64]
    /// Keys by their times. One whose time has changed since is ignored.
    private var queue = PriorityQueue<Int64, SessionKey>()

    /// Creates a schedule of these keys.
    init(_ keys: [(key: SessionKey, dueAt: Int64)] = []) {
        times = Dictionary(keys.map { ($0.key, $0.dueAt) }) { first, _ in first }
        rebuild()
    }

    /// Changes the time of `key`; ignores a key that is not kept.
    mutating func set(_ key: SessionKey, dueAt: Int64) {
        guard let known = times[key], known != dueAt else { return }
        times[key] = dueAt
        if dueAt < .max { queue.insert(key, dueAt) }
        if queue.count > 2 * times.count + 16 { rebuild() }
    }

    /// Returns the keys that are due at `now`. They stay due until their time changes.
    mutating func due(now: Int64) -> [SessionKey] {
        var due: [SessionKey: Int64] = [:]
        while let first = queue.first, first.priority <= now {
            queue.removeFirst()
            if times[first.value] == first.priority { due[first.value] = first.priority }
        }
        for (key, at) in due { queue.insert(key, at) }
        return Array(due.keys)
    }

    private mutating func rebuild() {
        queue = PriorityQueue()
        for (key, at) in times where at < .max { queue.insert(key, at) }
    }
}

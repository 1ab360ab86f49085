// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Limits repeated messages: the first is logged at once, the others as a count per interval. So a flood of requests
/// does not flood the log.
package struct Repetitions<Kind: Hashable & Sendable>: Sendable {
    /// The suppressed repetitions of one kind.
    package struct Held: Sendable, Equatable {
        /// The kind.
        package let kind: Kind
        /// The number of occurrences since the last line.
        package let count: Int
        /// The number of seconds in which they occurred.
        package let seconds: Int64

        /// Makes a count of one kind.
        package init(kind: Kind, count: Int, seconds: Int64) {
            self.kind = kind
            self.count = count
            self.seconds = seconds
        }
    }

    private struct Entry {
        /// The time of the last line, in milliseconds since 1970.
        var loggedAt: Int64
        var held = 0
    }

    /// The number of kinds that are tracked at once. If all are in their interval, a new kind is not logged.
    package static var mostKinds: Int { 256 }

    private let interval: Int64
    private var entries: [Kind: Entry] = [:]

    /// Makes an empty table. `interval` is in milliseconds.
    package init(interval: Int64 = 30_000) { self.interval = interval }

    /// Counts an occurrence at `now`, in milliseconds since 1970. Returns true if it is to be logged.
    package mutating func happened(_ kind: Kind, now: Int64) -> Bool {
        if var entry = entries[kind] {
            // Suppressed occurrences are first reported by `due`. A clock that was set back starts a new interval.
            guard entry.held == 0, !(entry.loggedAt...entry.loggedAt + interval).contains(now) else {
                entry.held += 1
                entries[kind] = entry
                return false
            }
        } else if entries.count >= Self.mostKinds {
            entries = entries.filter {
                $0.value.held > 0 || ($0.value.loggedAt...$0.value.loggedAt + interval).contains(now)
            }
            guard entries.count < Self.mostKinds else { return false }
        }
        entries[kind] = Entry(loggedAt: now)
        return true
    }

    /// Returns, and resets, the counts whose interval is over at `now`; with `all`, every count.
    package mutating func due(now: Int64, all: Bool = false) -> [Held] {
        var due: [Held] = []
        for (kind, entry) in entries where entry.held > 0 {
            let age = now - entry.loggedAt
            guard all || age < 0 || age >= interval else { continue }
            due.append(Held(kind: kind, count: entry.held, seconds: max(0, age + 999) / 1000))
            entries[kind] = Entry(loggedAt: now)
        }
        return due
    }

    /// Removes kinds, so that their next occurrence is logged at once. Returns the number of their unreported occurrences.
    package mutating func forget(where isMeant: (Kind) -> Bool) -> Int {
        var held = 0
        for (kind, entry) in entries where isMeant(kind) {
            held += entry.held
            entries[kind] = nil
        }
        return held
    }
}

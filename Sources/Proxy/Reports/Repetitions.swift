// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What happens again and again is told at once the first time, and then as a number once an interval: a flood of requests is
/// no flood of lines.
package struct Repetitions<Kind: Hashable & Sendable>: Sendable {
    /// What was held back of a kind.
    package struct Held: Sendable, Equatable {
        /// The kind.
        package let kind: Kind
        /// How many times it has happened since the last line about it.
        package let count: Int
        /// In how many seconds.
        package let seconds: Int64

        /// So many of a kind.
        package init(kind: Kind, count: Int, seconds: Int64) {
            self.kind = kind
            self.count = count
            self.seconds = seconds
        }
    }

    private struct Entry {
        /// When the last line about it was written, in milliseconds since 1970.
        var toldAt: Int64
        var held = 0
    }

    /// So many kinds are kept. More of them are told one by one, but no more than so many in an interval.
    package static var mostKinds: Int { 256 }

    private let interval: Int64
    private var entries: [Kind: Entry] = [:]

    /// `interval` in milliseconds.
    package init(interval: Int64 = 30_000) { self.interval = interval }

    /// It has happened at `now`, in milliseconds since 1970. Whether that is to be told.
    package mutating func happened(_ kind: Kind, now: Int64) -> Bool {
        if var entry = entries[kind] {
            // What is held is told first, by `due`; a clock that was set back begins anew.
            guard entry.held == 0, !(entry.toldAt...entry.toldAt + interval).contains(now) else {
                entry.held += 1
                entries[kind] = entry
                return false
            }
        } else if entries.count >= Self.mostKinds {
            entries = entries.filter {
                $0.value.held > 0 || ($0.value.toldAt...$0.value.toldAt + interval).contains(now)
            }
            guard entries.count < Self.mostKinds else { return false }
        }
        entries[kind] = Entry(toldAt: now)
        return true
    }

    /// What was held back of the kinds whose interval is over at `now`; `all`: of the others, too. It is told with that.
    package mutating func due(now: Int64, all: Bool = false) -> [Held] {
        var due: [Held] = []
        for (kind, entry) in entries where entry.held > 0 {
            let age = now - entry.toldAt
            guard all || age < 0 || age >= interval else { continue }
            due.append(Held(kind: kind, count: entry.held, seconds: max(0, age + 999) / 1000))
            entries[kind] = Entry(toldAt: now)
        }
        return due
    }

    /// Kinds that are no more: the next of them is told at once. Returns how many times they had happened untold.
    package mutating func forget(where isMeant: (Kind) -> Bool) -> Int {
        var held = 0
        for (kind, entry) in entries where isMeant(kind) {
            held += entry.held
            entries[kind] = nil
        }
        return held
    }
}

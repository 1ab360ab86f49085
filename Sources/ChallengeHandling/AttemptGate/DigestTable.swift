// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Records of credentials' values, by key and by the keyed digest of the value, in an order of their own.
///
/// Beyond 16 values of a key, and beyond 1,024 in all, the first in the order is dropped. Looking a value up, and adding it, cost the
/// same for any number of keys: each login does both.
struct DigestTable<Value: Sendable & Equatable>: Sendable {
    /// Record of one value.
    struct Entry: Sendable, Equatable {
        var key: LatchKey
        var digest: [UInt8]
        var value: Value
    }

    /// Position in the order: by `at`, then by the time of the addition.
    private struct Position: Sendable, Comparable {
        var at: Int64
        var number: UInt64

        static func < (left: Position, right: Position) -> Bool { (left.at, left.number) < (right.at, right.number) }
    }

    private typealias Record = (position: Position, entry: Entry)

    /// Records of each key, in their order.
    private var records: [LatchKey: [Record]] = [:]
    /// Keys with records, by the name of their credential.
    private var keys: [String: Set<LatchKey>] = [:]
    /// Keys by the positions of their records. A position without a record is ignored.
    private var order = PriorityQueue<Position, LatchKey>()
    private var lastNumber: UInt64 = 0
    /// Number of records.
    private(set) var count = 0

    /// Creates an empty table.
    init() {}

    /// All records, in their order.
    var entries: [Entry] { records.values.joined().sorted { $0.position < $1.position }.map(\.entry) }

    /// Returns the records of values of the credential of that name, in their order.
    func entries(ofCredential name: String) -> [Entry] {
        (keys[name] ?? []).flatMap { records[$0] ?? [] }.sorted { $0.position < $1.position }.map(\.entry)
    }

    /// Returns the record of a value, if there is one.
    subscript(key: LatchKey, digest: [UInt8]) -> Value? {
        records[key]?.first { $0.entry.digest == digest }?.entry.value
    }

    /// Adds a record behind those of the same `at`, in place of the one of the same value.
    mutating func add(_ key: LatchKey, digest: [UInt8], _ value: Value, at: Int64 = 0) {
        remove(key, digest: digest)
        lastNumber += 1
        let position = Position(at: at, number: lastNumber)
        var own = records[key] ?? []
        let index = own.lastIndex { $0.position < position }.map { $0 + 1 } ?? 0
        own.insert((position, Entry(key: key, digest: digest, value: value)), at: index)
        count += 1
        if own.count > LatchTable.limitPerKey {
            own.removeFirst()
            count -= 1
        }
        set(own, of: key)
        order.insert(key, position)
        while count > LatchTable.limit, let first = order.first {
            order.removeFirst()
            removeAll(of: first.value) { $0 == first.priority }
        }
        if order.count > 2 * count + 64 { rebuildOrder() }
    }

    /// Changes the record of a value in place, if there is one.
    mutating func change(_ key: LatchKey, digest: [UInt8], _ change: (inout Value) -> Void) {
        guard let index = records[key]?.firstIndex(where: { $0.entry.digest == digest }) else { return }
        change(&records[key, default: []][index].entry.value)
    }

    /// Removes the record of a value, if there is one.
    mutating func remove(_ key: LatchKey, digest: [UInt8]) {
        guard var own = records[key], let index = own.firstIndex(where: { $0.entry.digest == digest }) else { return }
        own.remove(at: index)
        count -= 1
        set(own, of: key)
    }

    /// Removes matching records.
    mutating func removeAll(where isMeant: (Entry) -> Bool) {
        for (key, own) in records {
            let left = own.filter { !isMeant($0.entry) }
            guard left.count < own.count else { continue }
            count -= own.count - left.count
            set(left, of: key)
        }
    }

    private mutating func set(_ own: [Record], of key: LatchKey) {
        records[key] = own.isEmpty ? nil : own
        if own.isEmpty {
            keys[key.credential]?.remove(key)
            if keys[key.credential]?.isEmpty == true { keys[key.credential] = nil }
        } else {
            keys[key.credential, default: []].insert(key)
        }
    }

    private mutating func removeAll(of key: LatchKey, _ isMeant: (Position) -> Bool) {
        guard let own = records[key] else { return }
        let left = own.filter { !isMeant($0.position) }
        count -= own.count - left.count
        set(left, of: key)
    }

    private mutating func rebuildOrder() {
        order = PriorityQueue()
        for (key, own) in records {
            for record in own { order.insert(key, record.position) }
        }
    }
}

extension DigestTable: Equatable {
    /// Returns true if both have the same records in the same order.
    static func == (left: DigestTable, right: DigestTable) -> Bool {
        left.count == right.count && left.entries == right.entries
    }
}

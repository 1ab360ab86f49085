// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Accepted values, by key and by the keyed digest of the credential's value.
public struct AcceptanceTable: Sendable, Equatable {
    /// Record of one accepted value.
    private struct Entry: Sendable, Equatable {
        var key: LatchKey
        var digest: [UInt8]
        var acceptance: Acceptance
        /// True if the value no longer counts as accepted: only its form is kept.
        var isWithdrawn = false
    }

    /// Maximum accepted values per key; beyond it the oldest is dropped.
    public static let limitPerKey = LatchTable.limitPerKey
    /// Maximum records of all keys; beyond it the oldest is dropped.
    public static let limit = LatchTable.limit

    /// All records, the newest last.
    private var entries: [Entry] = []

    /// Creates an empty table.
    public init() {}

    /// Number of records.
    public var count: Int { entries.count }

    /// Returns the acceptance of a value, if there is one.
    public func acceptance(_ key: LatchKey, digest: [UInt8]) -> Acceptance? {
        entries.first { $0.key == key && $0.digest == digest && !$0.isWithdrawn }?.acceptance
    }

    /// Returns the forms with which values of the credential of that name were accepted, the oldest first.
    ///
    /// Includes those of values that no longer count as accepted: a page must not decide anew where the next value goes.
    public func forms(ofCredential name: String) -> [(key: LatchKey, form: AcceptedForm)] {
        entries.compactMap { entry in
            entry.key.credential == name ? entry.acceptance.form.map { (entry.key, $0) } : nil
        }
    }

    /// Records the acceptance of a value, and keeps the known addresses and the known form.
    public mutating func accept(_ key: LatchKey, digest: [UInt8], _ acceptance: Acceptance) {
        var acceptance = acceptance
        if let index = entries.firstIndex(where: { $0.key == key && $0.digest == digest }) {
            acceptance = acceptance.adding(entries.remove(at: index).acceptance)
        }
        entries.append(Entry(key: key, digest: digest, acceptance: acceptance))
        if entries.count(where: { $0.key == key }) > Self.limitPerKey,
            let oldest = entries.firstIndex(where: { $0.key == key })
        {
            entries.remove(at: oldest)
        }
        if entries.count > Self.limit { entries.removeFirst(entries.count - Self.limit) }
    }

    /// Withdraws the acceptance of a value that was refused; its form stays.
    public mutating func remove(_ key: LatchKey, digest: [UInt8]) {
        entries.removeAll { $0.key == key && $0.digest == digest && $0.acceptance.form == nil }
        for index in entries.indices where entries[index].key == key && entries[index].digest == digest {
            entries[index].isWithdrawn = true
        }
    }

    /// Adds the records that are only in `other`, as older than its own.
    public mutating func merge(_ other: AcceptanceTable) {
        let more = other.entries.filter { entry in
            !entries.contains { $0.key == entry.key && $0.digest == entry.digest }
                || !entry.isWithdrawn && acceptance(entry.key, digest: entry.digest) == nil
        }
        guard !more.isEmpty else { return }
        let own = entries
        entries = []
        for entry in more + own where entry.isWithdrawn || acceptance(entry.key, digest: entry.digest) == nil {
            accept(entry.key, digest: entry.digest, entry.acceptance)
            if entry.isWithdrawn { remove(entry.key, digest: entry.digest) }
        }
    }
}

extension AcceptanceTable {
    /// Returns the table as JSON bytes, with digests in hexadecimal.
    public func serialized() -> [UInt8] {
        let marks = entries.map { entry -> JSONValue in
            var members = LatchTable.members(of: entry.key, digest: entry.digest)
            members["at"] = .integer(entry.acceptance.at)
            if !entry.acceptance.wasAsked { members["unasked"] = .integer(1) }
            if entry.isWithdrawn { members["withdrawn"] = .integer(1) }
            // Earlier versions read `path` alone.
            members["path"] = entry.acceptance.path.map { .string($0) }
            members["addresses"] = .array(entry.acceptance.addresses.map(Self.value(of:)))
            members["form"] = entry.acceptance.form?.json
            return .object(members)
        }
        return JSONValue.object(["version": .integer(1), "accepted": .array(marks)]).serialized()
    }

    /// Parses the bytes of a table; `nil` for invalid bytes or another version.
    ///
    /// A lost record would let a page decide anew where a value goes, and spend submissions of a value that is right.
    public init?(parsing bytes: [UInt8]) {
        guard let value = JSONValue(parsing: bytes, within: .local), value["version"]?.integerValue == 1,
            case .array(let marks)? = value["accepted"]
        else { return nil }
        for mark in marks {
            guard let (key, digest) = LatchTable.key(in: mark), let at = mark["at"]?.integerValue else { return nil }
            let wasAsked = mark["unasked"]?.integerValue == nil
            var acceptance = Acceptance(path: mark["path"]?.stringValue, at: at, wasAsked: wasAsked)
            if case .array(let addresses)? = mark["addresses"] {
                let read = addresses.compactMap(Self.address(in:))
                guard read.count == addresses.count else { return nil }
                acceptance = Acceptance(read, at: at, wasAsked: wasAsked)
            }
            if let form = mark["form"] {
                guard let read = AcceptedForm(form) else { return nil }
                acceptance.form = read
            }
            accept(key, digest: digest, acceptance)
            if mark["withdrawn"] != nil { remove(key, digest: digest) }
        }
    }

    private static func value(of address: Acceptance.Address) -> JSONValue {
        var members: [String: JSONValue] = ["path": .string(address.path)]
        if !address.wasAsked { members["unasked"] = .integer(1) }
        return .object(members)
    }

    private static func address(in value: JSONValue) -> Acceptance.Address? {
        value["path"]?.stringValue.map { .init(path: $0, wasAsked: value["unasked"]?.integerValue == nil) }
    }
}

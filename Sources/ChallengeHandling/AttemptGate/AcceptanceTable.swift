// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Accepted values, by key and by the keyed digest of the credential's value.
public struct AcceptanceTable: Sendable, Equatable {
    /// Record of one accepted value.
    private struct Record: Sendable, Equatable {
        var acceptance: Acceptance
        /// True if the value no longer counts as accepted: only its form is kept.
        var isWithdrawn = false
    }

    /// Maximum accepted values per key; beyond it the oldest is dropped.
    public static let limitPerKey = LatchTable.limitPerKey
    /// Maximum records of all keys; beyond it the oldest is dropped.
    public static let limit = LatchTable.limit

    /// All records, the newest last.
    private var records = DigestTable<Record>()

    /// Creates an empty table.
    public init() {}

    /// Number of records.
    public var count: Int { records.count }

    /// Returns the acceptance of a value, if there is one.
    public func acceptance(_ key: LatchKey, digest: [UInt8]) -> Acceptance? {
        records[key, digest].flatMap { $0.isWithdrawn ? nil : $0.acceptance }
    }

    /// Returns the forms with which values of the credential of that name were accepted, the oldest first.
    ///
    /// Includes those of values that no longer count as accepted: a page must not decide anew where the next value goes.
    public func forms(ofCredential name: String) -> [(key: LatchKey, form: AcceptedForm)] {
        records.entries(ofCredential: name).compactMap { entry in
            entry.value.acceptance.form.map { (entry.key, $0) }
        }
    }

    /// Records the acceptance of a value, and keeps the known addresses and the known form.
    public mutating func accept(_ key: LatchKey, digest: [UInt8], _ acceptance: Acceptance) {
        let known = records[key, digest]?.acceptance
        records.add(key, digest: digest, Record(acceptance: known.map { acceptance.adding($0) } ?? acceptance))
    }

    /// Withdraws the acceptance of a value that was refused; its form stays.
    public mutating func remove(_ key: LatchKey, digest: [UInt8]) {
        if records[key, digest]?.acceptance.form == nil { records.remove(key, digest: digest) }
        records.change(key, digest: digest) { $0.isWithdrawn = true }
    }

    /// Adds the records that are only in `other`, as older than its own.
    public mutating func merge(_ other: AcceptanceTable) {
        let more = other.records.entries.filter { entry in
            records[entry.key, entry.digest] == nil
                || !entry.value.isWithdrawn && acceptance(entry.key, digest: entry.digest) == nil
        }
        guard !more.isEmpty else { return }
        let own = records.entries
        records = DigestTable()
        for entry in more + own
        where entry.value.isWithdrawn || acceptance(entry.key, digest: entry.digest) == nil {
            accept(entry.key, digest: entry.digest, entry.value.acceptance)
            if entry.value.isWithdrawn { remove(entry.key, digest: entry.digest) }
        }
    }
}

extension AcceptanceTable {
    /// Returns the table as JSON bytes, with digests in hexadecimal.
    public func serialized() -> [UInt8] {
        let marks = records.entries.map { entry -> JSONValue in
            let acceptance = entry.value.acceptance
            var members = LatchTable.members(of: entry.key, digest: entry.digest)
            members["at"] = .integer(acceptance.at)
            if !acceptance.wasAsked { members["unasked"] = .integer(1) }
            if entry.value.isWithdrawn { members["withdrawn"] = .integer(1) }
            // Earlier versions read `path` alone.
            members["path"] = acceptance.path.map { .string($0) }
            members["addresses"] = .array(acceptance.addresses.map(Self.value(of:)))
            members["form"] = acceptance.form?.json
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

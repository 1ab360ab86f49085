// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Latches of a daemon, by key and by the keyed digest of the credential's value.
///
/// A rejected value is remembered when another replaces it, so changing back does not send it again.
public struct LatchTable: Sendable, Equatable {
    /// Latch with its key and value.
    public struct Entry: Sendable, Equatable {
        /// Key of the latch.
        public var key: LatchKey
        /// Digest of the rejected value, never the value.
        public var digest: [UInt8]
        /// The latch.
        public var latch: Latch

        /// Creates an entry.
        public init(key: LatchKey, digest: [UInt8], latch: Latch) {
            self.key = key
            self.digest = digest
            self.latch = latch
        }
    }

    /// Maximum rejected values per key; beyond it the earliest is dropped.
    public static let limitPerKey = 16
    /// Maximum number of latches; beyond it the earliest is dropped.
    public static let limit = 1024

    private var latches = DigestTable<Latch>()

    /// All latches, in the order in which they closed.
    public var entries: [Entry] {
        latches.entries.map { Entry(key: $0.key, digest: $0.digest, latch: $0.value) }
    }

    /// Creates an empty table.
    public init() {}

    /// Returns the latch that is closed for a value at `now`, in ms since 1970, if there is one.
    public func closedLatch(_ key: LatchKey, digest: [UInt8], now: Int64) -> Latch? {
        latches[key, digest].flatMap { $0.isClosed(at: now) ? $0 : nil }
    }

    /// Closes a latch, replacing one for the same value that did not close later.
    ///
    /// The closing may be written long after it was made, and another process may have closed the latch meanwhile, for longer.
    public mutating func close(_ key: LatchKey, digest: [UInt8], _ latch: Latch) {
        if let other = latches[key, digest], other.closedAt > latch.closedAt { return }
        insert(Entry(key: key, digest: digest, latch: latch))
    }

    /// Opens all latches of a challenge, or of all for nil, that closed by `end` (ms since 1970), and returns their number.
    public mutating func unlatch(challenge: String?, until end: Int64) -> Int {
        let before = latches.count
        latches.removeAll { (challenge == nil || $0.key.challenge == challenge) && $0.value.closedAt <= end }
        return before - latches.count
    }

    /// Removes the latches that have opened by `now`.
    public mutating func removeOpened(now: Int64) {
        latches.removeAll { !$0.value.isClosed(at: now) }
    }

    /// Adds the latches that only `other` has, or that closed later there.
    public mutating func merge(_ other: LatchTable) {
        for entry in other.entries {
            if let own = latches[entry.key, entry.digest], own.closedAt >= entry.latch.closedAt { continue }
            insert(entry)
        }
    }

    private mutating func insert(_ entry: Entry) {
        latches.add(entry.key, digest: entry.digest, entry.latch, at: entry.latch.closedAt)
    }
}

extension LatchTable {
    /// Returns the table as JSON bytes, with digests in hexadecimal.
    public func serialized() -> [UInt8] {
        let latches = entries.map { entry -> JSONValue in
            var members = Self.members(of: entry.key, digest: entry.digest)
            members["reason"] = .string(entry.latch.reason.rawValue)
            members["closed-at"] = .integer(entry.latch.closedAt)
            members["opens-at"] = entry.latch.opensAt.map { .integer($0) }
            if !entry.latch.evidence.isEmpty { members["evidence"] = .string(entry.latch.evidence) }
            return .object(members)
        }
        return JSONValue.object(["version": .integer(1), "latches": .array(latches)]).serialized()
    }

    /// Parses the bytes of a table; nil if any part is invalid.
    ///
    /// All or nothing, because an unreadable latch must not count as open.
    public init?(parsing bytes: [UInt8]) {
        guard let value = JSONValue(parsing: bytes, within: .local), value["version"]?.integerValue == 1,
            case .array(let latches)? = value["latches"]
        else { return nil }
        for latch in latches {
            guard let entry = Self.entry(latch) else { return nil }
            insert(entry)
        }
    }

    private static func entry(_ value: JSONValue) -> Entry? {
        guard let (key, digest) = key(in: value),
            let reason = value["reason"]?.stringValue.flatMap(Latch.Reason.init(rawValue:)),
            let closedAt = value["closed-at"]?.integerValue
        else { return nil }
        return Entry(
            key: key, digest: digest,
            latch: Latch(
                reason: reason, closedAt: closedAt, opensAt: value["opens-at"]?.integerValue,
                evidence: value["evidence"]?.stringValue ?? ""))
    }

    /// Returns a key and a value's digest as members of a JSON object.
    static func members(of key: LatchKey, digest: [UInt8]) -> [String: JSONValue] {
        [
            "scheme": .string(key.origin.scheme.rawValue), "host": .string(key.origin.host),
            "port": .integer(Int64(key.origin.port)), "challenge": .string(key.challenge),
            "credential": .string(key.credential), "digest": .string(Hex.encode(digest)),
        ]
    }

    /// Returns the key and digest that `members(of:digest:)` wrote.
    static func key(in value: JSONValue) -> (LatchKey, digest: [UInt8])? {
        guard let scheme = value["scheme"]?.stringValue.flatMap(Origin.Scheme.init(rawValue:)),
            let host = value["host"]?.stringValue,
            let port = value["port"]?.integerValue.flatMap(UInt16.init(exactly:)),
            let challenge = value["challenge"]?.stringValue, let credential = value["credential"]?.stringValue,
            let digest = value["digest"]?.stringValue.flatMap(Hex.decode)
        else { return nil }
        let origin = Origin(scheme: scheme, host: host, port: port)
        return (LatchKey(origin: origin, challenge: challenge, credential: credential), digest)
    }
}

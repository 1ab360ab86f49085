// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The latches of a daemon as a value: by key and by the keyed digest of the credential's value. A rejected value stays
/// remembered when another takes its place, so changing back does not send it again.
public struct LatchTable: Sendable, Equatable {
    /// One latch, and what it is closed for.
    public struct Entry: Sendable, Equatable {
        /// The use that it is closed for.
        public var key: LatchKey
        /// The digest of the value that was rejected; never the value.
        public var digest: [UInt8]
        /// The latch.
        public var latch: Latch

        /// An entry.
        public init(key: LatchKey, digest: [UInt8], latch: Latch) {
            self.key = key
            self.digest = digest
            self.latch = latch
        }
    }

    /// The most rejected values of one key that are remembered; beyond, the earliest is forgotten.
    public static let limitPerKey = 16
    /// The most latches in all; beyond, the earliest is forgotten.
    public static let limit = 1024

    /// All latches, in the order in which they closed.
    public private(set) var entries: [Entry] = []

    /// An empty table.
    public init() {}

    /// The latch closed for that value at `now` (milliseconds since 1970), if there is one. One whose time is over is open.
    public func closedLatch(_ key: LatchKey, digest: [UInt8], now: Int64) -> Latch? {
        entries.first { $0.key == key && $0.digest == digest && $0.latch.isClosed(at: now) }?.latch
    }

    /// Closes a latch, in the place of one that was closed for the same value.
    public mutating func close(_ key: LatchKey, digest: [UInt8], _ latch: Latch) {
        insert(Entry(key: key, digest: digest, latch: latch))
    }

    /// Opens all latches of a challenge, also those of earlier values; `nil`: of all challenges. Returns how many there were.
    public mutating func unlatch(challenge: String?) -> Int {
        let before = entries.count
        entries.removeAll { challenge == nil || $0.key.challenge == challenge }
        return before - entries.count
    }

    /// Forgets the latches whose time is over at `now`.
    public mutating func removeOpened(now: Int64) {
        entries.removeAll { !$0.latch.isClosed(at: now) }
    }

    /// Takes over what `other` has more, or has closed later.
    public mutating func merge(_ other: LatchTable) {
        for entry in other.entries {
            let own = entries.first { $0.key == entry.key && $0.digest == entry.digest }
            if let own, own.latch.closedAt >= entry.latch.closedAt { continue }
            insert(entry)
        }
    }

    private mutating func insert(_ entry: Entry) {
        entries.removeAll { $0.key == entry.key && $0.digest == entry.digest }
        let place = entries.lastIndex { $0.latch.closedAt <= entry.latch.closedAt }.map { $0 + 1 } ?? 0
        entries.insert(entry, at: place)
        var sameKey = entries.count { $0.key == entry.key }
        while sameKey > Self.limitPerKey, let earliest = entries.firstIndex(where: { $0.key == entry.key }) {
            entries.remove(at: earliest)
            sameKey -= 1
        }
        if entries.count > Self.limit { entries.removeFirst(entries.count - Self.limit) }
    }
}

extension LatchTable {
    /// The table as bytes to be kept; JSON, with digests in hexadecimal.
    public func serialized() -> [UInt8] {
        let latches = entries.map { entry -> JSONValue in
            var members = Self.members(of: entry.key, digest: entry.digest)
            members["reason"] = .string(entry.latch.reason.rawValue)
            members["closed-at"] = .integer(entry.latch.closedAt)
            members["opens-at"] = entry.latch.opensAt.map { .integer($0) }
            return .object(members)
        }
        return JSONValue.object(["version": .integer(1), "latches": .array(latches)]).serialized()
    }

    /// The table that `bytes` were taken from; `nil` where they are none. All or nothing: a latch that is not
    /// understood must not be taken for an open one.
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
            latch: Latch(reason: reason, closedAt: closedAt, opensAt: value["opens-at"]?.integerValue))
    }

    /// A key and a value's digest as members of an object.
    static func members(of key: LatchKey, digest: [UInt8]) -> [String: JSONValue] {
        [
            "scheme": .string(key.origin.scheme.rawValue), "host": .string(key.origin.host),
            "port": .integer(Int64(key.origin.port)), "challenge": .string(key.challenge),
            "credential": .string(key.credential), "digest": .string(hexadecimal(digest)),
        ]
    }

    /// The key and the digest that `members(of:digest:)` has written.
    static func key(in value: JSONValue) -> (LatchKey, digest: [UInt8])? {
        guard let scheme = value["scheme"]?.stringValue.flatMap(Origin.Scheme.init(rawValue:)),
            let host = value["host"]?.stringValue,
            let port = value["port"]?.integerValue.flatMap(UInt16.init(exactly:)),
            let challenge = value["challenge"]?.stringValue, let credential = value["credential"]?.stringValue,
            let digest = value["digest"]?.stringValue.flatMap(bytes(hexadecimal:))
        else { return nil }
        let origin = Origin(scheme: scheme, host: host, port: port)
        return (LatchKey(origin: origin, challenge: challenge, credential: credential), digest)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef")
        return String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    private static func bytes(hexadecimal text: String) -> [UInt8]? {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}

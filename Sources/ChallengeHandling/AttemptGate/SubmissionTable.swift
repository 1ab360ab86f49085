// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Submissions of values that no server has accepted yet, by key and by the keyed digest of the credential's value.
///
/// Usual policies lock an account after three to five wrong passwords, and an unclear outcome may have been counted. The second
/// submission of such a value therefore waits a minute, the third 15 minutes, and each later one an hour.
public struct SubmissionTable: Sendable, Equatable {
    /// Submissions of one value.
    public struct Count: Sendable, Equatable {
        /// Number of submissions, at least 1.
        public var submissions: Int
        /// Time of the last one in ms since 1970.
        public var last: Int64
        /// Version of the configuration with which the value was submitted; empty if unknown.
        public var configuration: String

        /// Creates a count.
        public init(submissions: Int, last: Int64, configuration: String = "") {
            self.configuration = configuration
            self.submissions = submissions
            self.last = last
        }

        /// Time of the next submission in ms since 1970.
        public var next: Int64 {
            let pauses = SubmissionTable.pauses
            return last.saturatingAdd(pauses[min(max(submissions, 1), pauses.count) - 1])
        }

        /// The count after one more submission at `now`.
        func adding(at now: Int64) -> Count {
            Count(submissions: min(submissions, 1 << 20) + 1, last: now, configuration: configuration)
        }
    }

    /// Pauses after the first, the second and each later submission, in ms.
    static let pauses: [Int64] = [60_000, 900_000, 3_600_000]

    /// All counts, the newest last.
    private var counts = DigestTable<Count>()

    /// Creates an empty table.
    public init() {}

    /// Number of counted values.
    public var count: Int { counts.count }

    /// Returns the submissions of a value; `nil` without any.
    public func submissions(_ key: LatchKey, digest: [UInt8]) -> Count? {
        counts[key, digest]
    }

    /// Sets the submissions of a value; `nil` forgets them.
    ///
    /// Beyond 16 values of a key, or 1,024 of all, the oldest count is dropped.
    public mutating func set(_ key: LatchKey, digest: [UInt8], _ count: Count?) {
        if let count { counts.add(key, digest: digest, count) } else { counts.remove(key, digest: digest) }
    }

    /// Returns the number of values of a challenge, or of all for `nil`, that wait at `now` (ms since 1970).
    func waiting(challenge: String?, at now: Int64) -> Int {
        counts.entries.count { (challenge == nil || $0.key.challenge == challenge) && $0.value.next > now }
    }

    /// Forgets the submissions of a challenge, or of all for `nil`, up to `end` (ms since 1970). Returns the number of values.
    public mutating func forget(challenge: String?, until end: Int64) -> Int {
        let before = counts.count
        counts.removeAll { (challenge == nil || $0.key.challenge == challenge) && $0.value.last <= end }
        return before - counts.count
    }
}

extension SubmissionTable {
    /// Returns the table as JSON bytes, with digests in hexadecimal.
    public func serialized() -> [UInt8] {
        let counts = counts.entries.map { entry -> JSONValue in
            var members = LatchTable.members(of: entry.key, digest: entry.digest)
            members["submissions"] = .integer(Int64(entry.value.submissions))
            members["last"] = .integer(entry.value.last)
            members["configuration"] = .string(entry.value.configuration)
            return .object(members)
        }
        return JSONValue.object(["version": .integer(1), "submissions": .array(counts)]).serialized()
    }

    /// Parses the bytes of a table; `nil` if any part is invalid.
    ///
    /// All or nothing, because a lost count would allow another submission.
    public init?(parsing bytes: [UInt8]) {
        guard let value = JSONValue(parsing: bytes, within: .local), value["version"]?.integerValue == 1,
            case .array(let counts)? = value["submissions"]
        else { return nil }
        for count in counts {
            guard let (key, digest) = LatchTable.key(in: count),
                let submissions = count["submissions"]?.integerValue.flatMap(Int.init(exactly:)), submissions > 0,
                let last = count["last"]?.integerValue
            else { return nil }
            let configuration = count["configuration"]?.stringValue ?? ""
            set(key, digest: digest, Count(submissions: submissions, last: last, configuration: configuration))
        }
    }
}

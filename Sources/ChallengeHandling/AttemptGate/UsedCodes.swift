// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// The steps of one-time passwords that were used: servers take each once (RFC 6238 §5.2). Known by the seed's digest.
public struct UsedCodes: Sendable, Equatable {
    /// Steps are forgotten a while after nobody takes them any more; and a clock that was so far ahead was wrong.
    private static let longest: Int64 = 2 * 3_600_000

    /// The end of the last step used, by the seed's digest, in milliseconds since 1970.
    public private(set) var ends: [String: Int64] = [:]

    /// None.
    public init() {}

    /// These.
    public init(ends: [String: Int64]) { self.ends = ends }

    /// The end of the last step of `seed` that was used, if the step that ends at `end` is no later one: it is not to be used.
    public func usedUntil(_ seed: String, stepEnding end: Int64) -> Int64? {
        ends[seed].flatMap { $0 >= end ? $0 : nil }
    }

    /// The step of `seed` that ends at `end` is used from now on.
    public mutating func use(_ seed: String, stepEnding end: Int64) { ends[seed] = max(end, ends[seed] ?? .min) }

    /// Takes over what `other` has more.
    public mutating func merge(_ other: UsedCodes) { ends.merge(other.ends, uniquingKeysWith: max) }

    /// Forgets the steps that are far from `now` (milliseconds since 1970).
    public mutating func removeDistant(now: Int64) {
        let near = now.saturatingSubtract(Self.longest)...now.saturatingAdd(Self.longest)
        ends = ends.filter { near.contains($0.value) }
    }

    /// The steps as bytes to be kept.
    public func serialized() -> [UInt8] { JSONValue.object(ends.mapValues { .integer($0) }).serialized() }

    /// The steps that `bytes` were taken from; none if they are unreadable.
    public init(parsing bytes: [UInt8]) {
        let object = JSONValue(parsing: bytes, within: .local)?.objectValue
        ends = object?.compactMapValues(\.integerValue) ?? [:]
    }
}

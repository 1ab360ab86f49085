// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A function that can be fed any bytes, and the rules that must then hold.
struct FuzzTarget: Sendable {
    /// The name of its seeds' folder and of its fuzzer.
    let name: String
    /// Feeds one input. Throws if a rule is broken; the caller finds traps and hangs.
    let run: @Sendable (Span<UInt8>) throws(Violation) -> Void

    static let all = [
        FuzzTarget(name: "requests", run: fuzzRequests),
        FuzzTarget(name: "responses", run: fuzzResponses),
        FuzzTarget(name: "chunks", run: fuzzChunks),
        FuzzTarget(name: "targets", run: fuzzTargets),
        FuzzTarget(name: "challenges", run: fuzzChallenges),
        FuzzTarget(name: "values", run: fuzzValues),
        FuzzTarget(name: "locations", run: fuzzLocations),
        FuzzTarget(name: "settings", run: fuzzSettings),
        FuzzTarget(name: "rewriting", run: fuzzRewriting),
        FuzzTarget(name: "handshakes", run: fuzzHandshakes),
        FuzzTarget(name: "trailers", run: fuzzTrailers),
        FuzzTarget(name: "certificates", run: fuzzCertificates),
        FuzzTarget(name: "pages", run: fuzzPages),
        FuzzTarget(name: "sessions", run: fuzzSessions),
        FuzzTarget(name: "replies", run: fuzzReplies),
        FuzzTarget(name: "frames", run: fuzzFrames),
        FuzzTarget(name: "numbers", run: fuzzNumbers),
        FuzzTarget(name: "connections", run: fuzzConnections),
        FuzzTarget(name: "answers", run: fuzzAnswers),
        FuzzTarget(name: "exchanges", run: fuzzExchanges),
        FuzzTarget(name: "recordings", run: fuzzRecordings),
    ]
}

/// A rule that an input broke.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// Throws if `holds` is false.
@inline(__always)
func require(_ holds: Bool, _ rule: @autoclosure () -> String) throws(Violation) {
    guard holds else { throw Violation(description: rule()) }
}

/// Choices that depend on the input alone, so that an input which fails once always fails, and contains nothing but the
/// protocol's own text.
struct Dice {
    private var state: UInt64

    init(_ input: Span<UInt8>) { state = input.fnv1a }

    /// Returns a number from 0 up to, but not including, `end`.
    mutating func below(_ end: Int) -> Int {
        // splitmix64
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(max(end, 1)))
    }

    mutating func flip() -> Bool { below(2) == 1 }

    /// Returns the arrival of `count` bytes: rising numbers of bytes that are there, the last one `count` itself. Now
    /// and then one byte at a time.
    mutating func arrivals(_ count: Int) -> [Int] {
        var ends: [Int] = []
        let longest = below(8) == 0 ? 1 : 1 + below(max(count, 2))
        var end = 0
        while end < count {
            end = min(end + 1 + below(longest), count)
            ends.append(end)
        }
        return count == 0 ? [0] : ends
    }
}

extension Span<UInt8> {
    /// FNV-1a hash of the bytes.
    var fnv1a: UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for index in indices { hash = (hash ^ UInt64(self[index])) &* 0x0000_0100_0000_01B3 }
        return hash
    }

    /// All of the bytes, copied.
    var array: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        for index in indices { bytes.append(self[index]) }
        return bytes
    }

    /// All of the bytes as text; invalid UTF-8 is repaired.
    var string: String { String(decoding: array, as: UTF8.self) }
}

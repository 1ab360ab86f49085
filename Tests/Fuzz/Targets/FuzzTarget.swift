// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Something that must be fed whatever bytes there are, and what must be true of it then.
struct FuzzTarget: Sendable {
    /// What its seeds' folder and its fuzzer are called.
    let name: String
    /// Feeds it one input. Throws where a rule is broken; a trap and a hang are found by whoever calls.
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

/// Throws where `holds` is false.
@inline(__always)
func require(_ holds: Bool, _ rule: @autoclosure () -> String) throws(Violation) {
    guard holds else { throw Violation(description: rule()) }
}

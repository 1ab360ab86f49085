// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// What `countersign match URI PATTERN…` prints: the pattern that wins, as it was written.
package enum MatchReport: Sendable, Equatable {
    /// An argument is no URI or no pattern; the message names it. Exit code 64 (`EX_USAGE` of sysexits).
    case invalid(String)
    /// No pattern covers the URI. Exit code 1.
    case none
    /// This one wins.
    case winner(String)

    /// Looks `uri` up among `patterns`.
    package init(uri: String, patterns: [String]) {
        var table = LocationTable<String>()
        for text in patterns {
            do {
                table.register(text, at: try LocationPattern(text))
            } catch {
                self = .invalid("\"\(text)\" is no location pattern: \(error.reason)")
                return
            }
        }
        do {
            let match = table.match(try Location(uri))
            self = match?.handlers.first.map(MatchReport.winner) ?? .none
        } catch {
            self = .invalid("\"\(uri)\" is no URI to match: \(error.reason)")
        }
    }

    /// The line for standard output; for `invalid`, for standard error.
    package var line: String {
        switch self {
        case .invalid(let message): message
        case .none: "none"
        case .winner(let pattern): pattern
        }
    }

    /// The exit code.
    package var exitCode: Int32 {
        switch self {
        case .invalid: 64
        case .none: 1
        case .winner: 0
        }
    }
}

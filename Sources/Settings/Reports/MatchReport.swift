// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Output of `countersign match URI PATTERN…`: the most specific pattern, as it was written.
package enum MatchReport: Sendable, Equatable {
    /// An argument is not a URI or not a pattern; the message names it. Exit code 64 (`EX_USAGE` of sysexits).
    case invalid(String)
    /// No pattern covers the URI. Exit code 1.
    case none
    /// The most specific pattern that covers the URI.
    case winner(String)

    /// Matches `uri` against `patterns`.
    package init(uri: String, patterns: [String]) {
        var table = LocationTable<String>()
        for text in patterns {
            do {
                table.register(text, at: try LocationPattern(text))
            } catch {
                self = .invalid("\"\(text)\" is not a location pattern: \(error.reason)")
                return
            }
        }
        do {
            let match = table.match(try Location(uri))
            self = match?.handlers.first.map(MatchReport.winner) ?? .none
        } catch {
            self = .invalid("\"\(uri)\" is not a URI to match: \(error.reason)")
        }
    }

    /// The result as JSON: `pattern`, null without a match.
    package var json: JSONValue {
        if case .winner(let pattern) = self { ["pattern": .string(pattern)] } else { ["pattern": .null] }
    }

    /// Line for standard output, or for standard error if `invalid`.
    package var line: String {
        switch self {
        case .invalid(let message): message
        case .none: "none"
        case .winner(let pattern): pattern
        }
    }

    /// Exit code.
    package var exitCode: Int32 {
        switch self {
        case .invalid: 64
        case .none: 1
        case .winner: 0
        }
    }
}

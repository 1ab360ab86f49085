// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling
internal import HTTPTypes

/// Difference between the answers to the right password and to a wrong one, as a rule of `failed`.
package struct RefusalDifference: Sendable {
    private let accepted: ExaminedResponse
    private let rejected: ExaminedResponse
    private static let words = [
        "invalid", "incorrect", "wrong", "fail", "denied", "bad ", "error", "not match", "unknown",
    ]

    /// Creates the difference of two answers to the same request.
    package init(accepted: ExaminedResponse, rejected: ExaminedResponse) {
        self.accepted = accepted
        self.rejected = rejected
    }

    /// The line `failed`; `nil` if the answers do not differ in a way that a rule can name.
    package var line: ConfigurationLine? {
        condition.map {
            ConfigurationLine(
                "failed: { \($0), because: wrong-password }", "answer to a wrong password, as it was seen")
        }
    }

    private var condition: String? {
        if rejected.status != accepted.status { return "status: \(rejected.status)" }
        if let target = rejected.fields[.location], target != accepted.fields[.location],
            let url = rejected.redirectTarget
        {
            let path = url.path == accepted.redirectTarget?.path ? url.target : url.path
            return "redirect-to: \(ConfigurationLine.scalar(path))"
        }
        return text.map { "body-contains: \(ConfigurationLine.scalar($0))" }
    }

    /// The first piece of text that only the rejected answer has, and that mentions a rejection.
    private var text: String? {
        let right = Self.pieces(of: accepted).map { $0.lowercased() }
        let wrong = Self.pieces(of: rejected).filter { !right.contains($0.lowercased()) }
        return wrong.first { piece in Self.words.contains { piece.lowercased().contains($0) } }
            ?? (wrong.count == 1 ? wrong.first : nil)
    }

    /// Returns the pieces of text between tags and quotes, as they are in the body.
    private static func pieces(of response: ExaminedResponse) -> [String] {
        let separators = Array("<>\"\n\r\t{}".utf8)
        return (response.body ?? []).split { separators.contains($0) }.prefix(4096).compactMap { bytes in
            let text = bytes.drop { $0 == UInt8.space }
            guard (3...80).contains(text.count), text.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return nil }
            return String(decoding: text, as: UTF8.self)
        }
    }
}

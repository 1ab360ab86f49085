// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling

extension ConversationRecord {
    /// Takes the paths out of what is told of the login: callers may have asked for them, and may name people or accounts.
    mutating func removePaths() {
        for index in steps.indices { steps[index].text = steps[index].text.withoutPaths }
        if let failure { self.failure?.detail = failure.detail.withoutPaths }
    }
}

extension String {
    /// The text with an ellipsis in place of the path of each address, and of each path that stands alone.
    var withoutPaths: String {
        split(separator: " ", omittingEmptySubsequences: false).map(Self.withoutPath).joined(separator: " ")
    }

    private static func withoutPath(_ word: Substring) -> String {
        let start: Substring.Index
        if let scheme = word.firstRange(of: "://") {
            start = scheme.upperBound
        } else {
            start = word.firstIndex { !"\"'(<".contains($0) } ?? word.endIndex
            guard start < word.endIndex, word[start] == "/" else { return String(word) }
        }
        guard let slash = word[start...].firstIndex(of: "/") else { return String(word) }
        let end = word.lastIndex { !"\"')>,.:;".contains($0) } ?? slash
        // A slash alone is no path that tells something.
        guard end > slash else { return String(word) }
        return "\(word[...slash])…\(word[word.index(after: end)...])"
    }
}

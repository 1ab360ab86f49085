// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Returns the fault of a name; nil for a valid one.
package func nameFault(_ name: String) -> String? {
    let isLegal = name.utf8.allSatisfy { byte in
        byte.isAlphanumeric || [0x2D, 0x2E, 0x5F].contains(byte)
    }
    guard isLegal, let first = name.utf8.first, ![0x2D, 0x2E].contains(first), name.utf8.count <= 64 else {
        return
            "\"\(name)\" is not a valid name (use letters, digits, -, _ and .; at most 64 characters; do not begin with - or .)"
    }
    return nil
}

/// Returns the candidate that a mistyped `word` most probably means.
///
/// Tries, in order: a candidate that `word` is a prefix or abbreviation of; one with the same last component; one
/// within an edit distance of max(1, length / 3).
func suggestion(for word: String, among candidates: some Sequence<String>) -> String? {
    // Almost any word is similar to a word of two letters.
    guard (3...64).contains(word.utf8.count), word.contains(where: \.isLetter) else { return nil }
    if let other = otherNames[word.lowercased()], candidates.contains(other) { return other }
    if let similar = abbreviation(word.lowercased(), among: candidates) { return similar }
    let allowed = max(1, word.count / 3)
    var best: (candidate: String, distance: Int)?
    let letters = Array(word.lowercased())
    for candidate in candidates {
        let others = Array(candidate.lowercased())
        // The distance is at least the difference of the lengths.
        guard abs(letters.count - others.count) <= allowed else { continue }
        let distance = editDistance(letters, others)
        if distance <= allowed, distance < (best?.distance ?? .max) { best = (candidate, distance) }
    }
    return best?.candidate
}

/// Names that the field has for the same thing.
private let otherNames = [
    "gssapi": "negotiate", "kerberos": "negotiate", "oauth": "bearer", "oauth2": "bearer", "spnego": "negotiate",
]

/// Returns the only candidate that begins with `word` except its last letter; else the only one that ends with its last
/// part.
private func abbreviation(_ word: String, among candidates: some Sequence<String>) -> String? {
    let begin = candidates.filter { $0 != word && $0.hasPrefix(word) }
    if begin.count == 1 { return begin[0] }
    if word.utf8.count >= 6, begin.isEmpty {
        let shorter = candidates.filter { $0.hasPrefix(word.dropLast()) }
        if shorter.count == 1 { return shorter[0] }
    }
    guard let last = word.split(separator: "-").last, last.utf8.count >= 5, last.utf8.count < word.utf8.count else {
        return nil
    }
    let end = candidates.filter { $0 != word && $0.hasSuffix("-\(last)") }
    return end.count == 1 ? end[0] : nil
}

/// Returns `; did you mean "…"?`, or nothing if no candidate is similar.
package func didYouMean(_ word: String, among candidates: some Sequence<String>) -> String {
    suggestion(for: word, among: candidates).map { "; did you mean \"\($0)\"?" } ?? ""
}

/// Returns the optimal string alignment distance: letters added, removed, replaced, or swapped with their neighbour.
private func editDistance(_ one: [Character], _ other: [Character]) -> Int {
    var rows = [Array(0...other.count)]
    for (row, letter) in one.enumerated() {
        var current = [row + 1]
        for (column, candidate) in other.enumerated() {
            var distance = min(
                rows[row][column] + (letter == candidate ? 0 : 1), rows[row][column + 1] + 1, current[column] + 1)
            if row > 0, column > 0, letter == other[column - 1], candidate == one[row - 1] {
                distance = min(distance, rows[row - 1][column - 1] + 1)
            }
            current.append(distance)
        }
        rows.append(current)
    }
    return rows[one.count][other.count]
}

/// Names whose values are probably secrets.
package enum SecretNames {
    private static let words: Set<String> = [
        "apikey", "authorization", "passphrase", "passwd", "password", "pin", "pwd", "secret", "seed", "token",
    ]
    private static let keys: Set<String> = ["access", "api", "auth", "private", "secret"]

    /// Returns whether a value of that name is probably a secret.
    ///
    /// The last word of the name decides, as in `j_password` or `X-Api-Key`.
    package static func contains(_ name: String) -> Bool {
        let parts = name.lowercased().split { "-_. ".contains($0) }.map(String.init)
        guard let last = parts.last else { return false }
        // Not every key is secret: `cache-key`, `public-key`.
        if last == "key" { return parts.count == 1 || keys.contains(parts[parts.count - 2]) }
        return words.contains(last)
    }
}

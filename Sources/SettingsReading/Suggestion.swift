// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The one of `candidates` that a mistyped `word` most probably means: at most a third of its letters differ, and at
/// least one may.
func suggestion(for word: String, among candidates: some Sequence<String>) -> String? {
    // Of a word of two letters any other one could be meant.
    guard (3...64).contains(word.utf8.count) else { return nil }
    let allowed = max(1, word.count / 3)
    var best: (candidate: String, distance: Int)?
    let letters = Array(word.lowercased())
    for candidate in candidates {
        let others = Array(candidate.lowercased())
        // At least as many letters differ as there are more of them.
        guard abs(letters.count - others.count) <= allowed else { continue }
        let distance = editDistance(letters, others)
        if distance <= allowed, distance < (best?.distance ?? .max) { best = (candidate, distance) }
    }
    return best?.candidate
}

/// `; did you mean "…"?` where there is a suggestion, else nothing.
package func didYouMean(_ word: String, among candidates: some Sequence<String>) -> String {
    suggestion(for: word, among: candidates).map { "; did you mean \"\($0)\"?" } ?? ""
}

/// The number of letters that must be added, removed, replaced or swapped with their neighbour (optimal string alignment).
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

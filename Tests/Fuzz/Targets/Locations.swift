// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// Reads location patterns and locations, one a line: which pattern covers which location, and which is most specific.
func fuzzLocations(_ input: Span<UInt8>) throws(Violation) {
    let lines = input.string.split(separator: "\n", maxSplits: 3, omittingEmptySubsequences: true)
    var patterns: [LocationPattern] = []
    var locations: [Location] = []
    for line in lines {
        if let pattern = try? LocationPattern(line) {
            try checkText(pattern)
            patterns.append(pattern)
        }
        if let location = try? Location(line) {
            try checkText(location)
            locations.append(location)
        }
        if let url = WebURL(line) { locations.append(Location(url)) }
    }
    try checkOrder(patterns)
    for location in locations {
        for pattern in patterns where pattern.covers(location) {
            try checkOrigins(pattern, location)
        }
        try checkWinner(patterns, location)
    }
}

/// Checks that a printed pattern is read as itself.
private func checkText(_ pattern: LocationPattern) throws(Violation) {
    guard let again = try? LocationPattern(pattern.text) else {
        throw Violation(description: "\(pattern.text) is no pattern, but one printed it")
    }
    try require(again == pattern && again.text == pattern.text, "\(pattern.text) is read as \(again.text)")
    try require(pattern.covers(line: pattern.text), "\(pattern.text) does not cover itself")
}

private func checkText(_ location: Location) throws(Violation) {
    guard location.userInfo?.password == nil else { return }
    guard let again = try? Location(location.description) else {
        throw Violation(description: "\(location) is no location, but one printed it")
    }
    try require(again == location, "\(location) is read as \(again)")
}

extension LocationPattern {
    /// Returns true if a text without wildcards also covers the location that it is.
    fileprivate func covers(line: String) -> Bool {
        guard !line.contains("*"), let location = try? Location(line) else { return true }
        return covers(location)
    }
}

/// A strict weak order (irreflexive, asymmetric, transitive, and so is being of equal rank).
private func checkOrder(_ patterns: [LocationPattern]) throws(Violation) {
    let count = patterns.count
    // wins[a][b]: a is more specific than b
    let wins = patterns.map { one in patterns.map { one.isMoreSpecific(than: $0) } }
    for one in 0..<count {
        try require(!wins[one][one], "\(patterns[one].text) wins over itself")
        for two in 0..<count {
            try require(
                !wins[one][two] || !wins[two][one],
                "\(patterns[one].text) and \(patterns[two].text) win over one another")
            for three in 0..<count {
                if wins[one][two], wins[two][three] {
                    try require(wins[one][three], "best is not transitive: \(patterns)")
                }
                if !wins[one][two], !wins[two][one], !wins[two][three], !wins[three][two] {
                    try require(
                        !wins[one][three] && !wins[three][one], "equal rank is not transitive: \(patterns)")
                }
            }
        }
    }
}

/// Checks that a pattern that covers a location is not skipped if only the location's origin, or a folder above it, is
/// known.
private func checkOrigins(_ pattern: LocationPattern, _ location: Location) throws(Violation) {
    guard location.userInfo == nil else { return }
    let label = location.labels.joined(separator: ".")
    let host = label.hasPrefix("[") ? String(label.dropFirst().dropLast()) : label
    let origin = Origin(scheme: .http, host: host, port: location.port)
    try require(pattern.mayCover(origin), "\(pattern.text) covers \(location) but nothing at \(origin)")
    let base = Location(WebURL(origin: origin, path: location.segments.first.map { "/\($0)" } ?? "/"))
    try require(
        pattern.coversSomething(below: base), "\(pattern.text) covers \(location) but nothing below \(base)")
}

/// Checks that the winner covers the location, that no other such pattern is more specific, and that the order of
/// registration has no effect.
private func checkWinner(_ patterns: [LocationPattern], _ location: Location) throws(Violation) {
    let covering = patterns.filter { $0.covers(location) }
    guard !covering.isEmpty else { return }
    var table = LocationTable<Int>()
    var reversed = LocationTable<Int>()
    for (number, pattern) in patterns.enumerated() { table.register(number, at: pattern) }
    for (number, pattern) in patterns.enumerated().reversed() { reversed.register(number, at: pattern) }
    guard let match = table.match(location) else {
        throw Violation(description: "nobody wins at \(location)")
    }
    try require(match.pattern.covers(location), "\(match.pattern.text) wins where it is not")
    try require(reversed.match(location)?.pattern == match.pattern, "who came first matters at \(location)")
    for other in covering where other != match.pattern {
        try require(match.pattern.isMoreSpecific(than: other), "\(other.text) loses to \(match.pattern.text)")
    }
    try require(
        match.handlers == patterns.indices.filter { patterns[$0] == match.pattern }, "other handlers stand there")
    for number in match.handlers { table.unregister(number, at: match.pattern) }
    try require(!table.patterns.contains(match.pattern), "a pattern without handlers stays")
}

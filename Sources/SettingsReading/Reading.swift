// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One reading of a file: the problems met so far, and where each value stands that was looked at.
package final class Reading {
    /// The file, as problems name it.
    package let file: String
    /// The values that `${NAME}` stands for.
    package let environment: [String: String]
    /// The names under `upstreams:`, whatever stands under them.
    package var upstreamNames: [String] = []
    /// The names of the handlers that the program brings along.
    package let handlerNames: Set<String>
    /// The keys that the format has, by the way to them, below whatever mapping the file has; the documentation is held against it.
    package private(set) var knownKeys: Set<String> = []
    /// The problems so far, in the order in which they were met.
    package private(set) var problems: [Problem] = []
    private var marks: [String: Mark] = [:]

    /// A reading of `file`, in which nothing has been looked at.
    package init(file: String, environment: [String: String], handlers: Set<String> = []) {
        handlerNames = handlers
        self.file = file
        self.environment = environment
    }

    /// The problems in the order of the file; of one place, in the order in which they were met.
    package var sortedProblems: [Problem] {
        let start = Mark(line: 0, column: 0)
        return problems.enumerated()
            .sorted { ($0.element.mark ?? start, $0.offset) < ($1.element.mark ?? start, $1.offset) }
            .map(\.element)
    }

    /// True if the file cannot be used.
    package var hasErrors: Bool { problems.contains { $0.severity == .error } }

    /// A problem at `mark`.
    package func report(_ message: String, at mark: Mark?, keyPath: String, severity: Problem.Severity = .error) {
        problems.append(Problem(file: file, mark: mark, keyPath: keyPath, message: message, severity: severity))
    }

    /// A problem at a value that was looked at before, or at what holds it.
    package func report(_ message: String, atPath keyPath: String, severity: Problem.Severity = .error) {
        var path = keyPath[...]
        while marks[String(path)] == nil, let end = path.lastIndex(where: { ".[".contains($0) }) { path = path[..<end] }
        report(message, at: marks[String(path)], keyPath: keyPath, severity: severity)
    }

    /// The format has `key` in the mapping at `keyPath`.
    package func knows(_ key: String, at keyPath: String) {
        knownKeys.insert(keyPath.isEmpty ? key : "\(keyPath).\(key)")
    }

    /// Remembers where a value stands.
    package func note(_ mark: Mark, at keyPath: String) {
        marks[keyPath] = mark
    }
}

/// A value together with the way to it, for checks that look at several.
package struct Placed<Value> {
    /// The way to it.
    package var path: String
    /// The value.
    package var value: Value

    /// A value at `path`.
    package init(path: String, value: Value) {
        self.path = path
        self.value = value
    }
}

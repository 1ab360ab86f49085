// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// State of one reading of a file: the problems so far, and the positions of values.
package final class Reading {
    /// File, as problems name it.
    package let file: String
    /// Values for `${NAME}`.
    package let environment: [String: String]
    /// Names under `upstreams`, even if their values have problems.
    package var upstreamNames: [String] = [] {
        didSet { knownUpstreams = Set(upstreamNames) }
    }
    /// The same names, to find one.
    private(set) var knownUpstreams: Set<String> = []
    /// Names of the program's own handlers.
    package let handlerNames: Set<String>
    /// Keys that readers asked for, by section. A test compares them with the tables.
    package private(set) var readKeys: Set<String> = []
    /// Problems in the order in which they were found.
    package private(set) var problems: [Problem] = []
    private var marks: [String: Mark] = [:]

    /// Creates the state before the reading of `file`.
    package init(file: String, environment: [String: String], handlers: Set<String> = []) {
        handlerNames = handlers
        self.file = file
        self.environment = environment
    }

    /// Problems in the order of the file. At one position, in the order in which they were found.
    package var sortedProblems: [Problem] {
        let start = Mark(line: 0, column: 0)
        return problems.enumerated()
            .sorted { ($0.element.mark ?? start, $0.offset) < ($1.element.mark ?? start, $1.offset) }
            .map(\.element)
    }

    /// True if the file cannot be used.
    package var hasErrors: Bool { problems.contains { $0.severity == .error } }

    /// Reports a problem at `mark`.
    package func report(_ message: String, at mark: Mark?, keyPath: String, severity: Problem.Severity = .error) {
        problems.append(Problem(file: file, mark: mark, keyPath: keyPath, message: message, severity: severity))
    }

    /// Reports a problem at a key path, or at the nearest enclosing value.
    package func report(_ message: String, atPath keyPath: String, severity: Problem.Severity = .error) {
        var path = keyPath[...]
        while marks[String(path)] == nil, let end = path.lastIndex(where: { ".[".contains($0) }) { path = path[..<end] }
        report(message, at: marks[String(path)], keyPath: keyPath, severity: severity)
    }

    /// Records that a reader asked for `key` of `section`.
    func recordRead(of key: String, in section: String) {
        readKeys.insert(section.isEmpty ? key : "\(section).\(key)")
    }

    /// Records the position of a value.
    package func record(_ mark: Mark, at keyPath: String) {
        marks[keyPath] = mark
    }
}

/// Value with its key path, for checks of several values.
package struct Located<Value> {
    /// Key path.
    package var path: String
    /// Value.
    package var value: Value

    /// Creates a value at `path`.
    package init(path: String, value: Value) {
        self.path = path
        self.value = value
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import SettingsReading

/// Output of `countersign check`.
package struct CheckReport: Sendable, Equatable {
    private let file: String
    private let problems: [Problem]

    /// Creates a report on `file`.
    package init(file: String, problems: [Problem]) {
        self.file = file
        self.problems = problems
    }

    /// Lines for standard error, one for each problem, in order.
    package var lines: [String] { problems.map(\.description) }

    /// Last line of the output: the number of errors and warnings.
    package var summary: String {
        let errors = problems.count { $0.severity == .error }
        let warnings = problems.count - errors
        let counts = [counted(errors, "error"), counted(warnings, "warning")].compactMap(\.self)
        guard !counts.isEmpty else { return "\(file): no problems" }
        return "\(file): \(counts.joined(separator: ", "))"
    }

    /// The problems as JSON: `file`, `errors`, `warnings`, and `problems` with place, key, severity and message.
    package var json: JSONValue {
        let errors = problems.count { $0.severity == .error }
        return [
            "file": .string(file), "errors": .integer(Int64(errors)),
            "warnings": .integer(Int64(problems.count - errors)),
            "problems": .array(
                problems.map { problem in
                    [
                        "file": .string(problem.file), "line": problem.mark.map { .integer(Int64($0.line)) } ?? .null,
                        "column": problem.mark.map { .integer(Int64($0.column)) } ?? .null,
                        "key": .string(problem.keyPath), "message": .string(problem.message),
                        "severity": problem.severity == .error ? "error" : "warning",
                    ]
                }),
        ]
    }

    /// True if the file cannot be used. The exit code is then 78 (`EX_CONFIG` of sysexits).
    package var hasErrors: Bool { problems.contains { $0.severity == .error } }

    private func counted(_ count: Int, _ noun: String) -> String? {
        count == 0 ? nil : "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}

/// Output of `countersign config`: the file as the daemon reads it.
package struct EffectiveReport: Sendable {
    /// Problems of the file, in its order.
    package let problems: [Problem]
    private let root: YAMLNode?

    /// Reads the file at `path` as `Settings.load` does. `isEffective` fills in every default.
    package init(
        path: String, isEffective: Bool, environment: [String: String], handlers: Set<String> = [],
        kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) {
        do {
            self.init(
                try readFile(path), file: path, isEffective: isEffective, environment: environment, handlers: handlers,
                kinds: kinds)
        } catch {
            self.init(root: nil, problems: [error.problem(of: path)])
        }
    }

    /// Reads `bytes` as `Settings.parse` does.
    package init(
        _ bytes: [UInt8], file: String, isEffective: Bool = true, environment: [String: String],
        handlers: Set<String> = [], kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) {
        let reading = Reading(file: file, environment: environment, handlers: handlers)
        let value = Settings.parse(bytes, reading, kinds: kinds).root
        let root = value.map { isEffective ? $0.effective : $0.node }
        self.init(root: reading.hasErrors ? nil : root, problems: reading.sortedProblems)
    }

    private init(root: YAMLNode?, problems: [Problem]) {
        self.root = root
        self.problems = problems
    }

    /// Lines of YAML; nil if the file cannot be used.
    package var lines: [String]? { root?.lines }

    /// Lines of JSON; nil if the file cannot be used.
    package var jsonLines: [String]? { root?.jsonLines }
}

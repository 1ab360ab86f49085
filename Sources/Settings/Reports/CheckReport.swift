// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// What `countersign check` prints about a file.
package struct CheckReport: Sendable, Equatable {
    private let file: String
    private let problems: [Problem]

    /// A report on `file`.
    package init(file: String, problems: [Problem]) {
        self.file = file
        self.problems = problems
    }

    /// The problems, one a line and in order, for standard error.
    package var lines: [String] { problems.map(\.description) }

    /// The last line: how many there are, or that all is well.
    package var summary: String {
        let errors = problems.count { $0.severity == .error }
        let warnings = problems.count - errors
        let counts = [counted(errors, "error"), counted(warnings, "warning")].compactMap(\.self)
        guard !counts.isEmpty else { return "\(file): no problems" }
        return "\(file): \(counts.joined(separator: ", "))"
    }

    /// Whether the file cannot be used, which is exit code 78 (`EX_CONFIG` of sysexits).
    package var hasErrors: Bool { problems.contains { $0.severity == .error } }

    private func counted(_ count: Int, _ noun: String) -> String? {
        count == 0 ? nil : "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}

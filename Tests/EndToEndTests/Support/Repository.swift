// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The sources that these tests are part of.
enum Repository {
    /// Where they are.
    static let path = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

    /// The path of a file of theirs.
    static func path(of name: String) -> String { "\(path)/\(name)" }

    /// The text of a file of theirs.
    static func text(of name: String) -> String { String(decoding: readFile(path(of: name)), as: UTF8.self) }

    /// Runs a script of `Tests/Scripts`. It sees the tests' own PATH folders and nothing else of the environment.
    static func script(
        _ name: String, _ arguments: [String] = [], environment: [String: String] = [:], in folder: Folder
    ) async throws -> Command {
        try await Command.run(
            [path(of: "Tests/Scripts/\(name)")] + arguments, environment: environment, in: folder)
    }
}

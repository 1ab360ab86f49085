// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FoundationEssentials
import Testing

/// A page of the documentation.
struct Page: Sendable, CustomTestStringConvertible {
    /// Its path below the repository.
    let path: String
    let lines: [Substring]

    /// A page of the repository.
    init(_ path: String) throws {
        self.init(path, text: try String(contentsOfFile: "\(Self.repository)/\(path)", encoding: .utf8))
    }

    /// A page with this text.
    init(_ path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    var testDescription: String { path }

    /// README.md and all below docs.
    static func all() throws -> [Page] {
        let below = try FileManager.default.subpathsOfDirectory(atPath: "\(repository)/docs").sorted()
        return try (["README.md"] + below.filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }).map(Page.init)
    }

    /// The configuration of each application in Tests/Applications that has one of its own, with a listener, as a page.
    static func applications() throws -> [Page] {
        let folder = "Tests/Applications/apps"
        let files = try FileManager.default.contentsOfDirectory(atPath: "\(repository)/\(folder)").sorted()
        return try files.filter { $0.hasSuffix(".py") }.compactMap { file in
            let text = try String(contentsOfFile: "\(repository)/\(folder)/\(file)", encoding: .utf8)
            let parts = text.split(separator: "\"\"\"", omittingEmptySubsequences: false)
            let before = parts.firstIndex { $0.hasSuffix("configuration = ") || $0.hasSuffix("configuration = r") }
            guard let before else { return nil }
            let listener = "listeners: [{ address: 127.0.0.1:8080, upstream: \(file.dropLast(3)) }]"
            return Page("\(folder)/\(file)", text: "```yaml\n\(listener)\n\(parts[before + 1])\n```")
        }
    }

    private static let repository = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")

    /// The examples of configurations, each with the number of its first line.
    var configurations: [(line: Int, text: String)] {
        var found: [(line: Int, text: String)] = []
        var begun: Int?
        for (index, line) in lines.enumerated() {
            if let start = begun {
                guard line == "```" else { continue }
                found.append((start + 1, lines[start..<index].joined(separator: "\n")))
                begun = nil
            } else if line == "```yaml" {
                begun = index + 1
            }
        }
        return found
    }

    /// What stands in backticks in a line, in order.
    static func quoted(in line: Substring) -> [String] {
        line.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    }
}

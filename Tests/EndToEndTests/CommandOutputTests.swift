// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import FoundationEssentials
import Testing

@Suite("The output of commands as JSON")
struct CommandOutputTests {
    /// The keys of the first object of each command, as `docs/commands.md` tells them.
    private static func documented() throws -> [String: Set<String>] {
        let repository = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let text = try String(contentsOfFile: "/\(repository)/docs/commands.md", encoding: .utf8)
        let section = try #require(text.split(separator: "## Output as JSON").last)
        var keys: [String: Set<String>] = [:]
        for line in section.split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
            let name = cells[0].filter { $0 != "`" }.split(separator: " ").joined(separator: " ")
            let first = cells[2].prefix { $0 != ";" && $0 != ":" }
            keys[name] = Set(
                first.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                    .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) })
        }
        return keys
    }

    @Test("each command prints the keys that docs/commands.md lists, and no others")
    func keys() async throws {
        let documented = try Self.documented()
        #expect(documented.count == 14)
        try await withBank { bank in
            try await bank.expect("/balance", status: 200)
            let commands: [String: [String]] = [
                "check": [], "doctor": ["bank"], "explain": [bank.url("/balance")], "login": ["bank-pin"],
                "reload": [], "sessions drop": ["--all"], "status": [], "unlatch": ["bank-pin"], "wait": [],
            ]
            for (name, arguments) in commands.sorted(by: { $0.key < $1.key }) {
                let words = name.split(separator: " ").map(String.init) + arguments
                let run = try await Command.run(
                    [Binary.path] + words + ["--json", "--config", bank.folder.path(of: "countersign.yaml")],
                    environment: bank.environment, in: bank.folder)
                // No latch is closed here.
                #expect(run.exit == (name == "unlatch" ? 69 : 0), "\(name) \(run)")
                guard name != "unlatch" else { continue }
                let value = try #require(JSON(parsing: Array(run.output.utf8)), "\(name) \(run)")
                var object: JSON? = value
                if case .array(let list) = value { object = list.first }
                let keys = try #require(object?.members, "\(name) \(run)").map(\.name)
                #expect(Set(keys) == documented[name], "\(name)")
            }
            let match = try await Command.run(
                [Binary.path, "match", "http://a/b", "http://a/*", "--json"], in: bank.folder)
            #expect(match.output == "{\"pattern\":\"http://a/*\"}\n")
        }
    }
}

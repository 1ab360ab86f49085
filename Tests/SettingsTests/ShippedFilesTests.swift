// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import Settings
import SettingsReading
import Testing

@Suite("The configurations that are shipped")
struct ShippedFilesTests {
    @Test("config/countersign.yaml and config/minimal.yaml have no problems", arguments: ["countersign", "minimal"])
    func load(name: String) {
        let (settings, problems) = Settings.load(path: path(name), environment: [:])
        #expect(problems.map(\.description) == [])
        #expect(settings?.challenges.first?.name == "bank-pin")
    }

    @Test("config/countersign.yaml names every key of the format")
    func complete() throws {
        let text = try String(contentsOfFile: path("countersign"), encoding: .utf8)
        let keys = everything.split { !($0.isLetter || $0 == "-" || $0 == ":") }.filter { $0.hasSuffix(":") }
        let known = Set(keys.map { $0.drop { $0 == "-" } }.filter { $0.count > 1 })
        let own = [
            "X-Api-Key:", "X-Tenant:", "X-A:", "X-Auth:", "socks", "X-Locked:", "h:", "com:", "::", "n:", "rememberMe:",
            "j_password:", "http:", "https:", "rediss:", "unix:",
        ]
        var missing: [Substring] = []
        for key in known where !own.contains(String(key)) {
            if !text.contains("\(key) "), !text.contains("\(key)\n") { missing.append(key) }
        }
        #expect(missing == [])
        #expect(known.count > 60)
    }

    @Test("what countersign.yaml shows commented out is right too")
    func commentedOut() throws {
        let text = try String(contentsOfFile: path("countersign"), encoding: .utf8)
        // A comment that is off has no space behind its #.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            let indent = line.prefix { $0 == " " }
            let rest = line.dropFirst(indent.count)
            guard rest.hasPrefix("#"), !rest.hasPrefix("# ") || rest.hasPrefix("#  ") else { return String(line) }
            return String(indent + rest.dropFirst())
        }
        // Two of the lines are another way to write the line before them.
        let uncommented = lines.filter { !$0.hasPrefix("  address: [unix") }.joined(separator: "\n")
        let errors = Settings.parse(Array(uncommented.utf8), file: "f", environment: Self.environment).problems
            .filter { $0.severity == .error }
        #expect(errors.map(\.description) == [])
        let settings = Settings.parse(Array(uncommented.utf8), file: "f", environment: Self.environment).settings
        #expect(settings?.challenges.count == 6)
    }

    /// As under the unit.
    private static let environment = ["CREDENTIALS_DIRECTORY": "/run/credentials/countersign.service"]

    private func path(_ name: String) -> String {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(root)/config/\(name).yaml"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// A real web application of `Tests/Scripts/applications`, whose configuration is the recipe of `docs/challenges/gateways.md`.
struct Application: Sendable, CustomTestStringConvertible {
    /// Its row in the recipe's table.
    var name: String
    /// The script that runs it.
    var script: String
    /// A page for users, and text that only ann's has.
    var page: (path: String, text: String)
    /// A page for everybody.
    var openPage: String
    /// A page that ann may not see, and how the application answers her.
    var refused: (path: String, status: Int)
    /// The address that ends all sessions at the application.
    var expiry = "/-test/expire"

    static let django = Application(
        name: "Django", script: "django", page: ("/admin/", "<strong>ann</strong>"), openPage: "/public/",
        refused: ("/staff-only/", 302))
    static let dokuWiki = Application(
        name: "DokuWiki", script: "dokuwiki", page: ("/doku.php?id=start", ">ann<"), openPage: "/doku.php?id=public",
        refused: ("/doku.php?id=board", 200))
    static let jupyterHub = Application(
        name: "JupyterHub", script: "jupyterhub", page: ("/hub/home", "ann"), openPage: "/hub/health",
        refused: ("/hub/admin", 403), expiry: "/hub/-test/expire")
    static let mediaWiki = Application(
        name: "MediaWiki, private", script: "mediawiki", page: ("/index.php?title=Main_Page", ">Ann<"),
        openPage: "/index.php?title=Public", refused: ("/index.php?title=Special:Undelete", 200))

    var testDescription: String { name }

    /// The application as a fake is one, its challenge the recipe's without `left`.
    func kind(without left: String? = nil) throws -> FakeKind {
        let row = try Recipe.row(of: name)
        let lines = try Recipe.challenge.compactMap { line -> String? in
            let key = line.drop { $0 == " " }.prefix { $0 != ":" }
            if ["name", "upstream", "credential", left].contains(String(key)) { return nil }
            guard let value = row[String(key)] else { return line }
            return "\(line.prefix { $0 == " " })\(key): \(value)"
        }
        return FakeKind(
            script: "../applications/\(script)", arguments: ["${FOLDER}/application"],
            challenge: lines.joined(separator: "\n"))
    }
}

/// The recipe for web applications, as the documentation has it.
private enum Recipe {
    private static func section() throws -> ArraySlice<String> {
        let lines = Repository.text(of: "docs/challenges/gateways.md")
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        guard let start = lines.firstIndex(of: "## Web applications") else {
            throw ChildError(description: "gateways.md has no section for web applications")
        }
        let end = lines[(start + 1)...].firstIndex { $0.hasPrefix("## ") } ?? lines.endIndex
        return lines[start..<end]
    }

    /// The lines of its challenge, from the left edge on.
    static var challenge: [String] {
        get throws {
            let yaml = try section().drop { $0 != "challenges:" }.dropFirst().prefix { $0 != "```" }
            return yaml.map { String($0.dropFirst(4)) }
        }
    }

    /// The values of an application in the table, by their keys.
    static func row(of application: String) throws -> [String: String] {
        let rows = try section().filter { $0.hasPrefix("|") }.map { line in
            line.split(separator: "|").map { cell in cell.filter { $0 != "`" }.drop { $0 == " " } }
                .map { String($0).trimmingBlanks }
        }
        guard let head = rows.first, let row = rows.first(where: { $0.first == application }) else {
            throw ChildError(description: "gateways.md has no row for \(application)")
        }
        return Dictionary(uniqueKeysWithValues: zip(head, row).dropFirst())
    }
}

extension String {
    /// The text without blanks at its end.
    fileprivate var trimmingBlanks: String { String(reversed().drop { $0 == " " }.reversed()) }
}

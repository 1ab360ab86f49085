// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling

struct SessionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "List or drop the sessions of the running daemon.",
        subcommands: [List.self, Drop.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the sessions.")

        @OptionGroup var admin: AdminOptions

        @Flag(name: .long, help: "Print one JSON object.")
        var json = false

        func run() throws {
            let upstreams = try admin.client().send("GET", "/status").body["upstreams"] ?? .null
            if json {
                Process.print(upstreams)
            } else {
                for line in StatusLines.logins(of: upstreams) { Terminal.print(line) }
            }
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Drop the sessions of one challenge, or of all; the next request logs in again.")

        @OptionGroup var admin: AdminOptions

        @Argument(
            help: "The challenge, or the name of an upstream with `mobilefirst`.",
            completion: NameCompletion.challenges)
        var name: String?

        @Flag(name: .long, help: "Drop the sessions of all challenges.")
        var all = false

        @Flag(name: .long, help: "Print one JSON object.")
        var json = false

        func validate() throws {
            if name == nil, !all { throw ValidationError("name a challenge, or give --all") }
            if name != nil, all { throw ValidationError("give either a name or --all") }
        }

        func run() throws {
            let query = name.map { "?name=\(FormEncoding.percentEncoded($0))" } ?? ""
            let client = try admin.client()
            let dropped = try client.send("POST", "/sessions/drop\(query)").body["dropped"]?.integerValue ?? 0
            if dropped == 0, let name { try client.requireChallenge(named: name) }
            if json { Process.print(["dropped": .integer(dropped)]) } else { Process.print("dropped \(dropped)") }
        }
    }
}

extension AdminClient {
    /// Throws exit code 64 (EX_USAGE) and the names of all challenges if no challenge is named `name`.
    func requireChallenge(named name: String) throws(Failure) {
        guard case .unknown(let reason) = Readiness(of: name, in: try send("GET", "/status").body) else { return }
        throw Failure(reason, code: EX_USAGE)
    }
}

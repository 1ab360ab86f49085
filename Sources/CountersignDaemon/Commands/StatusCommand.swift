// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show how the running daemon and its logins stand.",
        discussion: """
            Ends with 0 if it is ready, with 69 if not or if it does not run. With --live it only asks whether the daemon's \
            loops turn, whatever upstreams and logins do: for a supervisor that starts it anew where not.
            """)

    @OptionGroup var admin: AdminOptions

    @Flag(name: .long, help: "Print nothing; end with 0 if the daemon lives.")
    var live = false

    @Flag(name: .long, help: "As one JSON object.")
    var json = false

    func validate() throws {
        if live, json { throw ValidationError("--live prints nothing: leave out one of --live and --json") }
    }

    func run() throws {
        if live { return try checkLife() }
        let answer = try admin.client().send("GET", "/status")
        if json {
            Process.say(String(decoding: answer.body.serialized(), as: UTF8.self))
        } else {
            for line in StatusLines.lines(of: answer.body) { Process.say(line) }
        }
        if answer.body["status"]?.stringValue != "ready" { throw ExitCode(EX_UNAVAILABLE) }
    }

    private func checkLife() throws {
        var client = try admin.client()
        client.patience = .seconds(5)
        guard try client.send("GET", "/livez").status == 200 else {
            throw Failure("a worker's loop does not turn", code: EX_UNAVAILABLE)
        }
    }
}

struct SessionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "List or drop the sessions of the running daemon.",
        subcommands: [List.self, Drop.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the sessions.")

        @OptionGroup var admin: AdminOptions

        @Flag(name: .long, help: "As one JSON object.")
        var json = false

        func run() throws {
            let upstreams = try admin.client().send("GET", "/status").body["upstreams"] ?? .null
            if json {
                Process.say(String(decoding: upstreams.serialized(), as: UTF8.self))
            } else {
                for line in StatusLines.logins(of: upstreams) { Process.say(line) }
            }
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Drop the sessions of a challenge, or all; the next request wins a new one.")

        @OptionGroup var admin: AdminOptions

        @Argument(help: "The challenge, or the upstream of a MobileFirst server.")
        var name: String?

        func run() throws {
            let query = name.map { "?name=\($0)" } ?? ""
            let answer = try admin.client().send("POST", "/sessions/drop\(query)")
            Process.say("dropped \(answer.body["dropped"]?.integerValue ?? 0)")
        }
    }
}

struct UnlatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unlatch", abstract: "Let a rejected credential be sent once more.",
        discussion: "For when the upstream's side was mended. A changed credential needs no unlatching.")

    @OptionGroup var admin: AdminOptions

    @Argument(help: "The challenge whose latch to open.")
    var name: String

    func run() throws {
        let answer = try admin.client().send("POST", "/unlatch?name=\(name)")
        guard answer.status == 200 else {
            throw Failure(answer.body["detail"]?.stringValue ?? "refused", code: EX_UNAVAILABLE)
        }
        let opened = answer.body["opened"]?.integerValue ?? 0
        Process.say("opened \(opened)")
        if opened == 0 { throw Failure("no latch of \(name) is closed", code: EX_UNAVAILABLE) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import System

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show the state of the running daemon and its logins.",
        discussion: """
            Exits with 0 if the daemon is ready, with 69 if it is not ready or not running. With --live, only tests that the \
            daemon's event loops run, whatever the state of upstreams and logins: for a supervisor that restarts a hung daemon.
            """)

    @OptionGroup var admin: AdminOptions

    @Flag(name: .long, help: "Print nothing; exit with 0 if the daemon is alive.")
    var live = false

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func validate() throws {
        if live, json { throw ValidationError("--live prints nothing: use either --live or --json") }
    }

    func run() throws {
        if live { return try checkLiveness() }
        let answer = try admin.client().send("GET", "/status")
        if json {
            Process.print(answer.body)
        } else {
            for line in StatusLines.lines(of: answer.body, now: SystemClock.wallClock() / 1000) { Terminal.print(line) }
        }
        if answer.body["status"]?.stringValue != "ready" { throw ExitCode(EX_UNAVAILABLE) }
    }

    private func checkLiveness() throws {
        var client = try admin.client()
        client.timeout = .seconds(5)
        guard try client.send("GET", "/livez").status == 200 else {
            throw Failure("the event loop of a worker is stuck", code: EX_UNAVAILABLE)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Settings

struct MatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "match", abstract: "Print the location pattern that wins for a URI.",
        discussion: """
            Of several patterns that cover the URI the most specific wins. Prints `none` and ends with 1 if none does. \
            Quote patterns, so that the shell leaves their asterisks alone.
            """)

    @Argument(help: "The URI, for example https://app.example.com/accounts.")
    var uri: String

    @Argument(
        help: ArgumentHelp("Location patterns: [scheme://][user[:password]@]host[:port][/path].", valueName: "pattern"))
    var patterns: [String]

    func run() throws {
        let report = MatchReport(uri: uri, patterns: patterns)
        if case .invalid(let message) = report { throw Failure(message, code: EX_USAGE) }
        Process.say(report.line)
        if report.exitCode != 0 { throw ExitCode(report.exitCode) }
    }
}

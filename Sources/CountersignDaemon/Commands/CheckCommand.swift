// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Curl
internal import Glibc
internal import Settings
internal import SettingsReading
internal import System

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Read a configuration and print every problem in it.",
        discussion:
            "Each problem is a line FILE:LINE:COL: key.path: message. Exits with 0, or with 78 if there is an error.")

    @OptionGroup var configuration: ConfigurationArguments

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func run() throws {
        let missing = CurlFeatures.installed.missing()
        for sentence in missing { Process.printError(sentence) }
        let file = ConfigurationFile(path: configuration.path)
        var (settings, problems) = file.read()
        OpenFileLimit.raise()
        if let limits = settings?.limits, let shortage = OpenFiles.shortage(for: limits) {
            problems.append(
                Problem(
                    file: file.path, mark: nil, keyPath: "limits.callers", message: shortage,
                    severity: .warning))
        }
        problems +=
            settings?.unknownUsers.map { user in
                Problem(
                    file: file.path, mark: nil, keyPath: "users", message: "there is no user \(user) on this machine",
                    severity: .warning)
            } ?? []
        let report = CheckReport(file: file.path, problems: problems)
        if json {
            Process.print(report.json)
        } else {
            for line in report.lines { Process.printError(line) }
            Process.print(report.summary)
        }
        if report.hasErrors || settings == nil { throw ExitCode(ConfigurationFile.exitCode(of: problems)) }
        if !missing.isEmpty { throw ExitCode(EX_UNAVAILABLE) }
    }
}

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Print a configuration as the daemon reads it.",
        discussion: """
            With --effective, every default is filled in and ${NAME} is replaced, except in text that goes into requests. The \
            output has the same effect as the file, and `check` accepts it. Credentials are named; no secret is read. Problems in \
            the file go to standard error. Exits with 0, or with 78 if there is an error.
            """)

    @OptionGroup var configuration: ConfigurationArguments

    @Flag(name: .long, help: "Fill in every default.")
    var effective = false

    @Flag(name: .long, help: "Print one JSON object, which is also a valid configuration.")
    var json = false

    func run() throws {
        let report = EffectiveReport(
            path: configuration.path, isEffective: effective, environment: Process.environment,
            handlers: OwnHandlers.names, kinds: OwnHandlers.kinds)
        for problem in report.problems { Process.printError(problem.description) }
        guard let lines = json ? report.jsonLines : report.lines else { throw ExitCode(EX_CONFIG) }
        for line in lines { Process.print(line) }
    }
}

struct MatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "match", abstract: "Print the location pattern that matches a URI best.",
        discussion: """
            Of several patterns that match the URI, the most specific wins. Prints `none` and exits with 1 if no pattern \
            matches. Quote the patterns, so that the shell does not expand their asterisks.
            """)

    @Argument(help: "The URI, for example https://app.example.com/accounts.")
    var uri: String

    @Argument(
        help: ArgumentHelp("Location patterns: [scheme://][user[:password]@]host[:port][/path].", valueName: "pattern"))
    var patterns: [String]

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func run() throws {
        let report = MatchReport(uri: uri, patterns: patterns)
        if case .invalid(let message) = report { throw Failure(message, code: EX_USAGE) }
        if json { Process.print(report.json) } else { Process.print(report.line) }
        if report.exitCode != 0 { throw ExitCode(report.exitCode) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Glibc
internal import Settings
internal import SettingsReading
internal import System

/// The option `--config FILE` of most commands.
struct ConfigurationOptions: ParsableArguments {
    /// Path of the package's configuration file.
    static let defaultPath = "/etc/countersign/countersign.yaml"
    /// Names of configuration files, for completion in a shell.
    static let completion = CompletionKind.file(extensions: ["yaml", "yml"])

    @Option(
        name: [.customShort("c"), .long], help: ArgumentHelp("The configuration file.", valueName: "file"),
        completion: Self.completion)
    var config = ConfigurationOptions.defaultPath

    /// Reads the file and prints every problem in it. Throws exit code 78 (EX_CONFIG) if one is an error.
    func load() throws -> Settings { try ConfigurationFile(path: config).load() }
}

/// The configuration of a command that has no other argument: `FILE`, or `--config FILE`.
struct ConfigurationArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp("The configuration file. Default: \(ConfigurationOptions.defaultPath)", valueName: "file"),
        completion: ConfigurationOptions.completion)
    var file: String?

    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: ArgumentHelp("The configuration file, as with other commands.", valueName: "file"),
        completion: ConfigurationOptions.completion)
    var option: String?

    func validate() throws {
        if file != nil, option != nil { throw ValidationError("name one file: FILE or --config FILE") }
    }

    /// The path of the file.
    var path: String { file ?? option ?? ConfigurationOptions.defaultPath }
}

/// The configuration file of a command.
struct ConfigurationFile {
    let path: String

    /// Reads the file, and returns its settings and every problem in it.
    func read() -> (settings: Settings?, problems: [Problem]) {
        var (settings, problems) = Settings.load(
            path: path, environment: Process.environment, handlers: OwnHandlers.names, kinds: OwnHandlers.kinds)
        if let advice, !problems.isEmpty { problems[0].message += advice }
        return (settings, problems)
    }

    /// Reads the file and prints every problem in it. Throws exit code 78 (EX_CONFIG) if one is an error, or 69 if nothing is known
    /// of the file.
    func load() throws -> Settings {
        let (settings, problems) = read()
        for problem in problems { Process.printError(problem.description) }
        guard let settings else { throw ExitCode(Self.exitCode(of: problems)) }
        return settings
    }

    /// Returns the exit code for a file that cannot be used: 69 (EX_UNAVAILABLE) if all errors may pass by themselves.
    static func exitCode(of problems: [Problem]) -> Int32 {
        problems.allSatisfy { $0.severity == .warning || $0.mayPass } ? EX_UNAVAILABLE : EX_CONFIG
    }

    /// Advice if the default file is missing.
    private var advice: String? {
        guard path == ConfigurationOptions.defaultPath, !FileSystem.allows(path, F_OK) else { return nil }
        return """
            . Write it, for example with what `countersign learn URL` prints, or name another file: --config FILE. To try without \
            a file: countersign serve --to URL. Step by step: \(ManualPage.gettingStarted.path)
            """
    }
}

/// Completion in a shell by the names in the configuration, as far as it can be read.
enum NameCompletion {
    /// Names of challenges.
    static let challenges = CompletionKind.custom { arguments, _, _ in
        names(arguments) { $0.challenges.map(\.name) + $0.upstreams.filter { $0.mobileFirst != nil }.map(\.name) }
    }
    /// Names of upstreams.
    static let upstreams = CompletionKind.custom { arguments, _, _ in names(arguments) { $0.upstreams.map(\.name) } }

    private static func names(_ arguments: [String], of list: (Settings) -> [String]) -> [String] {
        let file = ConfigurationFile(path: path(in: arguments) ?? ConfigurationOptions.defaultPath)
        return file.read().settings.map(list)?.sorted() ?? []
    }

    /// Returns the configuration named by the arguments typed so far.
    static func path(in arguments: [String]) -> String? {
        for (index, argument) in arguments.enumerated() {
            if argument.hasPrefix("--config=") { return String(argument.dropFirst("--config=".count)) }
            if argument == "--config" || argument == "-c" { return arguments.dropFirst(index + 1).first }
        }
        return nil
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Glibc
internal import Settings
internal import SettingsReading

/// `--config FILE`, as most commands take it.
struct ConfigurationOptions: ParsableArguments {
    /// Where the package puts it.
    static let defaultPath = "/etc/countersign/countersign.yaml"

    @Option(name: .long, help: ArgumentHelp("The configuration file.", valueName: "file"))
    var config = ConfigurationOptions.defaultPath

    /// Reads and resolves the file; prints every problem, and ends with 78 (EX_CONFIG) if one is an error.
    func load() throws -> Settings {
        let (settings, problems) = Settings.load(
            path: config, environment: Process.environment, handlers: OwnHandlers.names, kinds: OwnHandlers.kinds)
        for problem in problems { Process.complain(problem.description) }
        guard let settings else { throw ExitCode(EX_CONFIG) }
        return settings
    }
}

/// Exit codes of sysexits.h.
let (EX_OK, EX_USAGE, EX_UNAVAILABLE, EX_NOPERM, EX_CONFIG): (Int32, Int32, Int32, Int32, Int32) = (0, 64, 69, 77, 78)

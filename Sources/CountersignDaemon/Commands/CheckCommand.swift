// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Curl
internal import Settings
internal import SettingsReading

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Read a configuration and print every problem of it.",
        discussion: "Each problem is a line FILE:LINE:COL: key.path: message. Ends with 0, or with 78 for an error.")

    @OptionGroup var configuration: ConfigurationOptions

    func run() throws {
        let libcurl = CurlFeatures.installed
        Process.say(libcurl.summary)
        for sentence in libcurl.missing() { Process.complain(sentence) }
        var (settings, problems) = Settings.load(
            path: configuration.config, environment: Process.environment, handlers: OwnHandlers.names,
            kinds: OwnHandlers.kinds)
        OpenFiles.raiseLimit()
        if let limits = settings?.limits, let shortage = OpenFiles.shortage(for: limits) {
            problems.append(
                Problem(
                    file: configuration.config, mark: nil, keyPath: "limits.callers", message: shortage,
                    severity: .warning))
        }
        let report = CheckReport(file: configuration.config, problems: problems)
        for line in report.lines { Process.complain(line) }
        Process.say(report.summary)
        if report.hasErrors || settings == nil { throw ExitCode(EX_CONFIG) }
        if !libcurl.missing().isEmpty { throw ExitCode(EX_UNAVAILABLE) }
    }
}

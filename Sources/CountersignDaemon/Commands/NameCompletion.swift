// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Settings

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

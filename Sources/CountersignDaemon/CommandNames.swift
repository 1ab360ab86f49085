// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import SettingsReading

/// Names of the commands, to explain an argument that is not one of them.
enum CommandNames {
    /// Returns the reason why `arguments` do not name a command; nil if they do.
    static func fault(in arguments: [String]) -> String? {
        var command: any ParsableCommand.Type = Program.self
        var path = "countersign"
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !argument.hasPrefix("-") else { return nil }
            let names = subcommands.map(name)
            if argument == "help", command == Program.self { return nil }
            guard let index = names.firstIndex(of: argument) else {
                return "\(path) has no command \"\(argument)\"\(didYouMean(argument, among: names)); "
                    + "it has \(names.joined(separator: ", "))"
            }
            command = subcommands[index]
            path += " \(argument)"
        }
        return nil
    }

    /// Returns the name of a command; that of a type without one is made of the type's name.
    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}

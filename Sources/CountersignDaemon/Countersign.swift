// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import CVersion
package import ChallengeHandling
internal import Glibc
internal import SettingsReading
internal import System

/// The root command of the program.
///
/// All commands are synchronous, even if they wait for `async` code: an asynchronous main would leave the main thread, which the daemon
/// needs for its signals.
struct Program: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "countersign",
        abstract: "An authenticating reverse proxy: programs send plain HTTP to it, and it answers the upstream's "
            + "authentication challenges.",
        discussion: """
            To try it, run `countersign demo`. To use it, write a configuration, then run `countersign check` and `countersign serve`.
            """,
        version: Version.text,
        subcommands: [
            ServeCommand.self, CheckCommand.self, ConfigCommand.self, ExplainCommand.self, MatchCommand.self,
            LoginCommand.self, LearnCommand.self, KeysCommand.self, RunCommand.self,
            DoctorCommand.self, ReloadCommand.self, StatusCommand.self, SessionsCommand.self, UnlatchCommand.self,
            WaitCommand.self, KeyringCommand.self, BugReportCommand.self, DemoCommand.self,
        ])
}

/// The program `countersign`.
public enum Countersign {
    /// Runs the command that the arguments of the process name.
    ///
    /// Returns when the command has ended, or exits the process if it fails. Call this function once, from the main thread.
    ///
    /// `handlers` are the program's own challenge handlers, by the names that the configuration uses for them:
    ///
    /// ```yaml
    /// challenges:
    ///   - { name: portal, at: portal.example.com/*, handler: corporate-portal }
    /// ```
    public static func main(handlers: [String: OwnHandler] = [:]) {
        main(handlers: handlers, kinds: ChallengeKinds.all)
    }

    /// Runs the command with these kinds of challenges.
    package static func main(handlers: [String: OwnHandler] = [:], kinds: [any ChallengeKind.Type]) {
        OwnHandlers.set(handlers, kinds: kinds)
        CoreDumps.forbid()
        // The first argument is always there. Without arguments a daemon would print its help, and end with success.
        guard !CommandLine.arguments.isEmpty else {
            Terminal.printError(
                "countersign: the arguments cannot be read from /proc/self/cmdline; mount /proc, or see that files can be opened"
            )
            Glibc.exit(EX_UNAVAILABLE)
        }
        if let fault = CommandNames.fault(in: Array(CommandLine.arguments.dropFirst())) {
            Terminal.printError("countersign: \(fault)")
            Glibc.exit(EX_USAGE)
        }
        do {
            var command = try Program.parseAsRoot()
            try command.run()
        } catch let failure as Failure {
            Terminal.printError("countersign: \(failure.description)")
            Glibc.exit(failure.code)
        } catch let error as StateError {
            Process.printError("countersign: \(error.reason)")
            Glibc.exit(EX_UNAVAILABLE)
        } catch let code as ExitCode {
            Glibc.exit(code.rawValue)
        } catch {
            let code = Program.exitCode(for: error)
            guard code == .validationFailure else { Program.exit(withError: error) }
            // One prefix for all errors of the program.
            let text = Program.fullMessage(for: error)
            Process.printError("countersign: \(text.trimmingPrefix("Error: "))")
            Glibc.exit(EX_USAGE)
        }
    }
}

/// Version of the program.
enum Version {
    /// The version that `--version` and the metrics print: from git's tags in `make build`, else from CHANGELOG.md.
    static let text = unsafe String(cString: countersign_version())
}

/// Memory images that a crash would leave on disk or in the log.
enum CoreDumps {
    /// Disables core dumps, tracing by other processes, and Swift's crash handler.
    ///
    /// The kernel writes no memory image of this process, whatever the limits, and no other process of the same user can trace this one
    /// or read its memory (PR_SET_DUMPABLE, prctl(2)). If the call fails, the limits apply.
    ///
    /// Swift's crash handler is removed unless `SWIFT_BACKTRACE` is set: it prints memory that registers point to, and a process that gets
    /// SIGABRT from outside (the watchdog of systemd) would survive the signal.
    static func forbid() {
        ProcessMemory.forbidDumps()
        // Before anything reads `Process.environment`.
        guard Environment.value(of: "SWIFT_BACKTRACE") == nil else { return }
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] { signal(number, SIG_DFL) }
    }
}

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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import CVersion
package import ChallengeHandling
internal import Glibc

/// The commands of the one binary. Its commands are synchronous, also where they wait for `async` code: an asynchronous main leaves the
/// main thread for the pool's, and the daemon needs it for its signals.
struct Program: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "countersign",
        abstract: "An authenticating reverse proxy: programs speak plain HTTP to it, and it answers the upstream's "
            + "authentication challenges.",
        discussion: """
            Try it: `countersign demo`. Run it: write a configuration, `countersign check` it, `countersign serve` it.
            """,
        version: Version.text,
        subcommands: [
            ServeCommand.self, CheckCommand.self, ExplainCommand.self, MatchCommand.self, LoginCommand.self,
            DoctorCommand.self, ReloadCommand.self, StatusCommand.self, SessionsCommand.self, UnlatchCommand.self,
            WaitCommand.self, KeyringCommand.self, DemoCommand.self,
        ])
}

/// The program `countersign`.
public enum Countersign {
    /// Runs the command that the process's arguments name; returns, or ends the process, when that is over. To be called once, on
    /// the main thread, which then is the program's.
    ///
    /// `handlers` are challenge handlers of the program's own, by the names that the configuration has them stand somewhere by:
    ///
    /// ```yaml
    /// challenges:
    ///   - { name: portal, at: portal.example.com/*, handler: corporate-portal }
    /// ```
    public static func main(handlers: [String: OwnHandler] = [:]) {
        main(handlers: handlers, kinds: ChallengeKinds.all)
    }

    /// The same with these kinds of challenges.
    package static func main(handlers: [String: OwnHandler] = [:], kinds: [any ChallengeKind.Type]) {
        OwnHandlers.set(handlers, kinds: kinds)
        CoreDumps.forbid()
        do {
            var command = try Program.parseAsRoot()
            try command.run()
        } catch let failure as Failure {
            Process.complain("countersign: \(failure.description)")
            Glibc.exit(failure.code)
        } catch let error as StateError {
            Process.complain("countersign: \(error.reason)")
            Glibc.exit(EX_UNAVAILABLE)
        } catch {
            Program.exit(withError: error)
        }
    }
}

/// The program's version.
enum Version {
    /// As `--version` and the metrics tell it: what `make build` made of git's tags, or that of CHANGELOG.md.
    static let text = unsafe String(cString: countersign_version())
}

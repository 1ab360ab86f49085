// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Glibc

struct LoginCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login", abstract: "Run a login now and print the conversation, redacted.",
        discussion: """
            Without a name, runs all logins of the configuration. Ends with 0 only when every session was won. Keeps the \
            latches as the daemon does: a rejected credential is not sent again.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Argument(help: "The challenge; for a MobileFirst upstream also the upstream's name.")
    var challenge: String?

    func run() throws {
        let settings = try configuration.load()
        let world = try World(settings: settings, observer: PrintedLogin(), asker: Self.asker)
        let runs = try LoginRuns(settings: settings, challenge: challenge, world: world)
        guard !runs.isEmpty else {
            let names = runs.known.joined(separator: ", ")
            throw Failure(
                challenge.map { "there is no login \($0); there are: \(names)" } ?? "the configuration has no login",
                code: EX_USAGE)
        }
        let failed = Blocking.run {
            await runs.results().reduce(into: false) { failed, ended in
                if case .failure = ended.result { failed = true }
            }
        }
        if failed { throw ExitCode(EX_UNAVAILABLE) }
    }

    /// Who is asked for what nobody wants to store.
    static var asker: any SecretAsker {
        isatty(STDIN_FILENO) == 1 ? TerminalPrompt() : PasswordAgents(environment: Process.environment)
    }
}

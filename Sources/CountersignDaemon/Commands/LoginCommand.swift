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
            latches as the daemon does: a rejected credential is not sent again. Shows each step and each request with the \
            time that it took; of a request method, origin, path and status.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Argument(help: "The challenge; for a MobileFirst upstream also the upstream's name.")
    var challenge: String?

    @Flag(name: .long, help: "As one JSON list of logins, each with its steps.")
    var json = false

    func run() throws {
        let settings = try configuration.load()
        let transcript = LoginTranscript(isPrinted: !json)
        let world = try World(settings: settings, observer: transcript, asker: Self.asker)
        let runs = try LoginRuns(settings: settings, challenge: challenge, world: world)
        guard !runs.isEmpty else {
            let names = runs.known.joined(separator: ", ")
            throw Failure(
                challenge.map { "there is no login \($0); there are: \(names)" } ?? "the configuration has no login",
                code: EX_USAGE)
        }
        let failed = Blocking.run {
            await runs.results(told: transcript).reduce(into: false) { failed, ended in
                if case .failure = ended.result { failed = true }
            }
        }
        if json { Process.say(String(decoding: transcript.document.serialized(), as: UTF8.self)) }
        if failed { throw ExitCode(EX_UNAVAILABLE) }
    }

    /// Who is asked for what nobody wants to store.
    static var asker: any SecretAsker {
        isatty(STDIN_FILENO) == 1 ? TerminalPrompt() : PasswordAgents(environment: Process.environment)
    }
}

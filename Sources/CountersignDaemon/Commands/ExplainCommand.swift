// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Settings

struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Show where a local request goes and what stands ready there.",
        discussion: """
            Names the listener, the route and the upstream that a local URL meets, and the challenge handlers there in \
            their order, each with the name of its credential. Nothing is sent, no secret is read. Where `users` or `by-user` \
            tell callers apart, --user says who is meant. If the daemon runs, what it does not send now is told with the reason.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Argument(help: "The local URL, for example http://127.0.0.1:8080/accounts.")
    var url: String

    @Option(name: .shortAndLong, help: "The method of the request.")
    var method = "GET"

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Whose request it is: a user's name or number. Without it, nobody's in particular.", valueName: "user"))
    var user: String?

    @Flag(name: .long, help: "As one JSON object.")
    var json = false

    func run() throws {
        let settings = try configuration.load()
        guard let address = WebURL(url) else {
            throw Failure("\(url): not an http or https address", code: EX_USAGE)
        }
        let caller = try user.map(Self.number)
        var explanation: Explanation
        do throws(CompositionError) {
            explanation = try Explanation(of: address, method: method, user: caller, settings: settings)
        } catch {
            throw Failure(error.description, code: EX_CONFIG)
        }
        if let status = Self.status(of: settings) { explanation.take(status) }
        if json {
            Process.say(String(decoding: explanation.json.serialized(), as: UTF8.self))
        } else {
            for line in explanation.lines { Process.say(line) }
        }
        if explanation.upstream == nil { throw ExitCode(1) }
    }

    /// The document of the daemon that runs with these settings; `nil` if none answers.
    private static func status(of settings: Settings) -> JSONValue? {
        for address in AdminAddresses.of(settings) {
            guard case .unix(let path, _) = address else { continue }
            var client = AdminClient(path: path)
            client.patience = .seconds(2)
            return try? client.send("GET", "/status").body
        }
        return nil
    }

    private static func number(of user: String) throws(Failure) -> UInt32 {
        do throws(CompositionError) {
            return try UserNumbers.uid(of: UInt32(user).map { .uid($0) } ?? .name(user), for: "--user")
        } catch {
            throw Failure(error.description, code: EX_USAGE)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Learning
internal import Settings
internal import SettingsReading
internal import System

struct LearnCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "learn", abstract: "Find out how a server logs in, and print its configuration.",
        discussion: """
            Requests the address and follows its redirects to the login page, without a secret. Says what kind of login it is. \
            Asks before it spends an attempt, logs in once by the daemon's own code, and asks again before it spends one \
            attempt with a wrong password, to learn how the server refuses it. Prints a configuration that `check` accepts and \
            whose login worked, or the page that defeated it. The configuration goes to standard output, everything else to \
            standard error; secrets are neither printed nor kept. A recording can hold secrets: delete it afterwards. Without a terminal and without --yes, no attempt is spent.
            """)

    @Argument(help: "An address that needs the login, such as https://wiki.example.com/start.")
    var url: String

    @Option(
        name: .long, help: "The credential's name. Default: the first label of the host; `upstream` for an IP address.")
    var credential: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Take the sources of credentials from this configuration.", valueName: "file"))
    var config: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Log in at this identity provider, to which the server redirects.", valueName: "origin"))
    var through: String?

    @Option(name: .long, help: ArgumentHelp("Authorities of the server's certificate.", valueName: "file"))
    var ca: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Learn the login from a browser's recording of it (HTTP Archive), at most 32 MiB.", valueName: "file"))
    var har: String?

    @Flag(name: .long, help: "Spend the attempts without asking: a login, and one wrong password.")
    var yes = false

    @Flag(name: .long, help: "Spend no attempt with a wrong password.")
    var noWrongAttempt = false

    func run() throws {
        guard let address = WebURL(url) else {
            throw Failure("\"\(url)\" is not an http or https address without user name", code: EX_USAGE)
        }
        let name = credential ?? Self.name(of: address.origin)
        if let fault = nameFault(name) { throw Failure(fault, code: EX_USAGE) }
        let credentials = LearnCredential(name: name, settings: try sources())
        let learner = Learner(
            address: address, authorities: ca, provider: try through.map(provider), recording: try har.map(recording),
            credentials: credentials,
            consent: Consent(isGiven: yes),
            spendsWrongAttempt: !noWrongAttempt)
        let block = try learner.run()
        for line in block.lines(listener: config == nil ? ConfigurationBlock.listener : nil) { Process.print(line) }
    }

    private func provider(_ text: String) throws -> Origin {
        guard let url = WebURL(text), url.path == "/", url.query == nil else {
            throw Failure("\"\(text)\" is not an origin, such as https://id.example.com", code: EX_USAGE)
        }
        return url.origin
    }

    private func recording(_ path: String) throws -> HARRecording {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try FileSystem.contents(of: path, limit: HARRecording.sizeLimit + 1)
        } catch {
            throw Failure("\(path) cannot be read: \(error)", code: EX_USAGE)
        }
        do throws(HARRecording.Fault) {
            return try HARRecording(parsing: bytes)
        } catch {
            throw Failure("\(path) cannot be used: \(error)", code: EX_DATA)
        }
    }

    private func sources() throws -> CredentialSettings {
        guard let config else { return .standard }
        var options = ConfigurationOptions()
        options.config = config
        return try options.load().credentials
    }

    /// Returns a name for an upstream: the first label of its host that is not a number.
    static func name(of origin: Origin) -> String {
        let labels = origin.host.split(separator: ".").filter { $0 != "www" }
        guard let label = labels.first, !label.contains(":"), !label.allSatisfy(\.isNumber),
            nameFault(String(label)) == nil
        else {
            return "upstream"
        }
        return String(label)
    }
}

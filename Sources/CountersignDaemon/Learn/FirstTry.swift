// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Learning
internal import Secrets
internal import Settings
internal import SettingsReading

/// `countersign serve --to URL`: a daemon without a file, with the login that the server asks for.
struct FirstTry {
    private let look: SiteLook
    private let listener: String
    /// True if the user named a credential, so that there must be a login.
    private let needsLogin: Bool

    /// Reads the options. `listener` is the address to listen at, `authorities` the file of the certificate's authorities.
    init(to text: String, credential: String?, listener: String, authorities: String?) throws(Failure) {
        guard let url = WebURL(text) else {
            throw Failure("\"\(text)\" is not an http or https address without user name", code: EX_USAGE)
        }
        let name = credential ?? LearnCommand.name(of: url.origin)
        if let fault = nameFault(name) { throw Failure(fault, code: EX_USAGE) }
        look = SiteLook(
            address: url, authorities: authorities, provider: nil, recording: nil,
            // A stored value is used only if its credential was named: another server may have a host with the same
            // first label.
            credentials: LearnCredential(
                name: name, settings: credential == nil ? Self.noSource : .standard))
        self.listener = listener
        needsLogin = credential != nil
    }

    private static var noSource: CredentialSettings {
        var settings = CredentialSettings.standard
        settings.sources = []
        return settings
    }

    /// Looks at the server, logs in once, and serves until the process is interrupted. Prints the configuration, and nothing else, to
    /// standard output.
    func run() throws {
        let (block, sources, hasUnstored) = try configured()
        let written = block.lines(listener: listener) + sources
        let configuration = try TemporaryConfiguration("serve") { folder in
            let lines = written + ["admin: { address: \"unix:\(folder)/admin.sock\" }"]
            return lines.joined(separator: "\n") + "\n"
        }
        defer { configuration.remove() }
        try configuration.daemon().run { ports in
            for line in written { Process.print(line) }
            let host = listener.split(separator: ":").dropLast().joined(separator: ":")
            let place = ports.first.flatMap { $0 == 0 ? nil : "http://\(host):\($0)" }
            Process.printError("")
            if let place { Process.printError("Try it:      curl \(place)\(look.address.target)") }
            Process.printError("Its state:   countersign status --socket \(configuration.folder)/admin.sock")
            Process.printError(
                "To keep it:  the lines on standard output are a configuration: serve --to URL > FILE, then countersign serve FILE"
            )
            if hasUnstored {
                let variables = block.fields.map { LearnCredential.variable(of: block.name, $0) }
                Process.printError(
                    "             The typed values are not stored: set \(variables.joined(separator: " and ")), or use `countersign keyring`"
                )
            }
            Process.printError("Press Ctrl-C to stop.")
        }
    }

    /// Returns the configuration of the login that the server demands, the lines of its credential's source, and true if typed
    /// values are in memory only. Values that are not stored are asked for at the terminal.
    private func configured() throws -> (block: ConfigurationBlock, sources: [String], hasUnstored: Bool) {
        let found: SiteLook.Result
        do {
            found = try look.run { Process.printError($0) }
            if found.names != nil {
                throw LearnDefeat(
                    found.findings.asked.summary,
                    "the login asks for the name first. `countersign learn \(look.address)` finds its second page.")
            }
        } catch let failure as Failure {
            // The words of the configuration, in those of the command.
            let text = failure.description.replacing(
                "`tls.ca` sets the trusted ones", with: "--ca FILE names the trusted ones")
            throw Failure(text, code: failure.code)
        } catch let defeat as LearnDefeat {
            guard !needsLogin else { throw Failure("\(defeat). \(Self.otherLogins)", code: EX_UNAVAILABLE) }
            Process.printError("requests are forwarded without a login: \(defeat.reason)")
            Process.printError(Self.otherLogins)
            return (look.forwarding, [], false)
        }
        guard !found.block.fields.isEmpty else { return (found.block, [], false) }
        let login = try FirstLogin(look: look, found: found).run()
        for field in login.typed {
            guard let value = login.credential[field] else { continue }
            Process.setVariable(LearnCredential.variable(of: login.credential.name, field), to: value.revealText())
        }
        guard !login.typed.isEmpty else { return (login.block, [], false) }
        let sources = try TypedValues(credential: login.credential, fields: login.typed).offer()
        return (login.block, sources, sources.isEmpty)
    }

    private static var otherLogins: String {
        "A login that is a request with JSON, a token or a fixed key is written by hand: see \(ManualPage.jsonLogin.path) "
            + "(\"A login in JSON\") and the list in \(ManualPage.challenges.path)"
    }
}

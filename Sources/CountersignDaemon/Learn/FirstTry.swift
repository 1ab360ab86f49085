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

    /// Reads the options. `listener` is the address to listen at.
    init(to text: String, credential: String?, listener: String) throws(Failure) {
        guard let url = WebURL(text) else {
            throw Failure("\"\(text)\" is not an http or https address without user name", code: EX_USAGE)
        }
        let name = credential ?? LearnCommand.name(of: url.origin)
        if let fault = nameFault(name) { throw Failure(fault, code: EX_USAGE) }
        look = SiteLook(
            address: url, authorities: nil, provider: nil, recording: nil,
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

    /// Looks at the server, prints a configuration for it, and serves until the process is interrupted.
    func run() throws {
        let block = try block()
        let configuration = try TemporaryConfiguration("serve") { folder in
            let lines = block.lines(listener: listener) + ["admin: { address: \"unix:\(folder)/admin.sock\" }"]
            return lines.joined(separator: "\n") + "\n"
        }
        defer { configuration.remove() }
        try configuration.daemon().run { ports in
            for line in block.lines(listener: listener) { Process.print(line) }
            Process.print("")
            let host = listener.split(separator: ":").dropLast().joined(separator: ":")
            let place = ports.first.flatMap { $0 == 0 ? nil : "http://\(host):\($0)" }
            if let place { Process.print("Try it:      curl \(place)\(look.address.target)") }
            Process.print("Its state:   countersign status --socket \(configuration.folder)/admin.sock")
            Process.print("To keep it:  save the lines above as FILE, and run countersign serve FILE")
            Process.print("Press Ctrl-C to stop.")
        }
    }

    /// Returns the configuration of the login that the server demands. Values that are not stored are asked for at the
    /// terminal.
    private func block() throws -> ConfigurationBlock {
        let found: SiteLook.Result
        do {
            found = try look.run { Process.printError($0) }
        } catch let defeat as LearnDefeat {
            guard !needsLogin else { throw Failure("\(defeat)", code: EX_UNAVAILABLE) }
            Process.printError("requests are forwarded without a login: \(defeat.reason)")
            return look.forwarding
        }
        guard !found.block.fields.isEmpty else { return found.block }
        let credential = try look.credentials.complete(found.stored, fields: found.block.fields)
        for (field, value) in credential.fields where found.stored[field] == nil {
            Process.setVariable(LearnCredential.variable(of: credential.name, field), to: value.revealText())
        }
        return found.block
    }
}

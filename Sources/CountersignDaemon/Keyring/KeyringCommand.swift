// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Secrets
internal import System

/// The commands of the encrypted keyring.
struct KeyringCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring", abstract: "Store credentials in an encrypted file.",
        discussion: """
            The keyring's passphrase is the first one found of: the systemd credential keyring-passphrase, \
            COUNTERSIGN_KEYRING_PASSPHRASE, the content of a key file, a prompt. Values are read from standard input or a prompt.

            The daemon notices changes without a reload.
            """,
        subcommands: [
            KeyringInit.self, KeyringSet.self, KeyringGet.self, KeyringList.self, KeyringRemove.self, KeyringRekey.self,
        ])
}

/// `keyring set NAME FIELD`
struct KeyringSet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Store a value, read from standard input or a prompt.",
        discussion: """
            One newline at the end of standard input is not part of the value. Text of several lines is refused unless it is PEM.
            """)

    @OptionGroup var options: KeyringOptions
    @Argument(help: "The credential's name.") var name: String
    @Argument(help: "The field: username, password, pin, …") var field: String
    @Argument(help: .hidden) var excess: [String] = []

    func validate() throws {
        // A usage error would repeat the value.
        guard excess.isEmpty else {
            throw ValidationError(
                "a value is never taken from the command line, where others can read it: type it at the prompt, or send it "
                    + "to standard input")
        }
    }

    func run() throws {
        let location = try options.location()
        try reportingKeyringErrors { () throws(KeyringError) in
            // The passphrase is verified first, so that a value is not typed for nothing.
            let passphrase = try location.passphrase().read()
            let opened = try location.file.open(passphrase: passphrase)
            let value = try location.input.value("Value of \(name) \(field): ")
            try location.file.update(passphrase: passphrase, previous: opened) { (keyring) throws(KeyringError) in
                try keyring.set(value, for: name, field)
            }
        }
        // For a person who has typed it; a script has the exit code.
        if location.input.isTyped { Terminal.printError("stored: \(field) of \(name)") }
    }
}

/// `keyring get NAME FIELD`
struct KeyringGet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Write a value to standard output, byte for byte.",
        discussion: "On a terminal a newline is added, and characters that control it are left out.")

    @OptionGroup var options: KeyringOptions
    @Argument(help: "The credential's name.") var name: String
    @Argument(help: "The field.") var field: String

    func run() throws {
        let location = try options.location()
        let value = try reportingKeyringErrors { () throws(KeyringError) in
            try location.file.open(passphrase: location.passphrase().read()).value(of: name, field)
        }
        guard let value else { throw Failure("the keyring has no \(name) \(field)", code: EX_UNAVAILABLE) }
        let isShown = isatty(STDOUT_FILENO) == 1
        let isWritten = (isShown ? Secret("\(value.revealText().harmless)\n") : value).write(to: STDOUT_FILENO)
        if !isWritten { throw Failure("the value could not be written", code: EX_UNAVAILABLE) }
    }
}

/// `keyring remove NAME [FIELD]`
struct KeyringRemove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a field, or a credential with all its fields.")

    @OptionGroup var options: KeyringOptions
    @Argument(help: "The credential's name.") var name: String
    @Argument(help: "The field. Default: all fields.") var field: String?

    func run() throws {
        let location = try options.location()
        let isRemoved = try reportingKeyringErrors { () throws(KeyringError) in
            let passphrase = try location.passphrase().read()
            return try location.file.update(passphrase: passphrase) { (keyring) throws(KeyringError) in
                keyring.remove(name, field)
            }
        }
        guard isRemoved else {
            throw Failure("the keyring has no \(field.map { "\(name) \($0)" } ?? name)", code: EX_UNAVAILABLE)
        }
    }
}

extension Secret {
    /// Writes all bytes without copying them. Returns true if successful.
    fileprivate func write(to descriptor: Int32) -> Bool {
        withBytes { (try? DescriptorIO.writeAll($0, to: descriptor)) != nil }
    }
}

struct KeyringInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Create an empty keyring.",
        discussion: """
            An existing file is never changed. A prompt for the passphrase asks twice. A key file that does not exist is made, with \
            a random passphrase.
            """)

    @OptionGroup var options: KeyringOptions

    func run() throws {
        let location = try options.location()
        try reportingKeyringErrors { () throws(KeyringError) in try location.file.refuseExisting() }
        try location.makeMissingKeyFile()
        try reportingKeyringErrors { () throws(KeyringError) in
            try location.file.create(passphrase: location.newPassphrase().read())
        }
    }
}

struct KeyringList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Show names and fields, never values.",
        discussion: "Prints a line for each credential: its name, then its fields.")

    @OptionGroup var options: KeyringOptions
    @Flag(name: .long, help: "Print one JSON object.") var json = false

    func run() throws {
        let location = try options.location()
        let contents = try reportingKeyringErrors { () throws(KeyringError) in
            try location.file.open(passphrase: location.passphrase().read()).contents
        }
        guard json else {
            for (name, fields) in contents { Process.print(([name] + fields).joined(separator: " ")) }
            return
        }
        let credentials = contents.map { name, fields in
            JSONValue.object(["name": .string(name), "fields": .array(fields.map { .string($0) })])
        }
        let report = JSONValue.object(["keyring": .string(location.path), "credentials": .array(credentials)])
        Process.print(report)
    }
}

struct KeyringRekey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey", abstract: "Change the passphrase of the keyring, with new keys.",
        discussion: """
            The new passphrase is read from a key file, from standard input, or from a prompt that asks twice. It is one line; one \
            newline at the end is not part of it.
            """)

    @OptionGroup var options: KeyringOptions

    @Option(
        name: .long,
        help: ArgumentHelp("A file of mode 0600 with the new passphrase.", valueName: "path"))
    var newKeyFile: String?

    func run() throws {
        let location = try options.location()
        try reportingKeyringErrors { () throws(KeyringError) in
            let passphrase = try location.passphrase().read()
            let opened = try location.file.open(passphrase: passphrase)
            try location.file.rekey(from: passphrase, to: newPassphrase(location), previous: opened)
        }
    }

    private func newPassphrase(_ location: KeyringLocation) throws(KeyringError) -> Secret {
        if let newKeyFile {
            return try KeyringPassphrase.content(of: newKeyFile, trust: FileTrust(environment: Process.environment))
        }
        let question = "New passphrase of \(location.path): "
        return location.input.isTyped ? try location.input.askTwice(question) : try location.input.value(question)
    }
}

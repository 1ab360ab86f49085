// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Secrets

/// `keyring init`
struct KeyringInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Make an empty keyring.",
        discussion: "An existing file is never touched. A passphrase that is typed is asked for twice.")

    @OptionGroup var options: KeyringOptions

    func run() throws {
        let location = try options.location()
        try reportingKeyringErrors { () throws(KeyringError) in
            try location.file.refuseExisting()
            try location.file.create(passphrase: location.newPassphrase().read())
        }
    }
}

/// `keyring list`
struct KeyringList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Show names and fields, never values.",
        discussion: "A line for each credential: its name, then its fields.")

    @OptionGroup var options: KeyringOptions
    @Flag(name: .long, help: "As one JSON object.") var json = false

    func run() throws {
        let location = try options.location()
        let contents = try reportingKeyringErrors { () throws(KeyringError) in
            try location.file.open(passphrase: location.passphrase().read()).contents
        }
        guard json else {
            for (name, fields) in contents { Process.say(([name] + fields).joined(separator: " ")) }
            return
        }
        let credentials = contents.map { name, fields in
            JSONValue.object(["name": .string(name), "fields": .array(fields.map { .string($0) })])
        }
        let report = JSONValue.object(["keyring": .string(location.path), "credentials": .array(credentials)])
        Process.say(String(decoding: report.serialized(), as: UTF8.self))
    }
}

/// `keyring rekey`
struct KeyringRekey: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey", abstract: "Give the keyring another passphrase, with fresh keys.",
        discussion: """
            The new one is read from a key file or from standard input, or typed twice. It is one line; one newline at the end is \
            not part of it.
            """)

    @OptionGroup var options: KeyringOptions

    @Option(
        name: .long,
        help: ArgumentHelp("A file of mode 0600 that holds the new passphrase.", valueName: "path"))
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Credentials
internal import Glibc
internal import Secrets

/// `keyring set NAME FIELD`
struct KeyringSet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Keep a value, read from standard input or typed.",
        discussion: """
            One newline at the end of standard input is not part of the value. Text of several lines is refused, but for PEM.
            """)

    @OptionGroup var options: KeyringOptions
    @Argument(help: "The credential's name.") var name: String
    @Argument(help: "The field: username, password, pin, …") var field: String

    func run() throws {
        let location = try options.location()
        try reportingKeyringErrors { () throws(KeyringError) in
            // The passphrase first, and tried: nobody should type a value in vain.
            let passphrase = try location.passphrase().read()
            let opened = try location.file.open(passphrase: passphrase)
            let value = try location.input.value("Value of \(name) \(field): ")
            try location.file.update(passphrase: passphrase, previous: opened) { (keyring) throws(KeyringError) in
                try keyring.set(value, for: name, field)
            }
        }
    }
}

/// `keyring get NAME FIELD`
struct KeyringGet: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Write a value to standard output, byte for byte.",
        discussion: "On a terminal a newline follows it.")

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
        let isWritten = (isShown ? Secret.joining([value, Secret("\n")]) : value).write(to: STDOUT_FILENO)
        if !isWritten { throw Failure("the value could not be written", code: EX_UNAVAILABLE) }
    }
}

/// `keyring remove NAME [FIELD]`
struct KeyringRemove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove a field, or a credential with all its fields.")

    @OptionGroup var options: KeyringOptions
    @Argument(help: "The credential's name.") var name: String
    @Argument(help: "The field; all of them without it.") var field: String?

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
    /// Writes all bytes, without a copy of them; says whether that worked.
    fileprivate func write(to descriptor: Int32) -> Bool {
        withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                var written = 0
                while written < bytes.count {
                    let count = unsafe Glibc.write(
                        descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written)
                    if count < 0 && errno == EINTR { continue }
                    guard count > 0 else { return false }
                    written += count
                }
                return true
            }
        }
    }
}

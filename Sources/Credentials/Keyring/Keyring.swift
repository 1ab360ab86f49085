// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

/// An open keyring: values by credential and field, sealed until they are requested.
///
/// A value without I/O; `KeyringFile` is the file on disk.
package struct Keyring: Sendable {
    private let header: KeyringFormat.Header
    private let keys: KeyringKeys
    private var entries: [KeyringFormat.Entry]

    /// Creates an empty keyring with `passphrase` and a new salt.
    package init(passphrase: Secret, cost: ScryptCost = .standard) throws(KeyringError) {
        let salt = Sealing.randomBytes(16)
        keys = try KeyringKeys(passphrase: passphrase, cost: cost, salt: salt)
        header = KeyringFormat.Header(cost: cost, salt: salt, check: keys.check)
        entries = []
    }

    /// Opens the keyring in `bytes`.
    ///
    /// The keys of `previous` are reused if both have the same header, which avoids the derivation.
    package init(reading bytes: [UInt8], passphrase: Secret, previous: Keyring? = nil) throws(KeyringError) {
        let format = try KeyringFormat(parsing: bytes, digest: KeyringKeys.digest)
        header = format.header
        if let previous, previous.header == format.header {
            keys = previous.keys
        } else {
            keys = try KeyringKeys(passphrase: passphrase, cost: header.cost, salt: header.salt)
        }
        guard keys.check == header.check else {
            throw KeyringError(.wrongPassphrase, "the passphrase is wrong")
        }
        guard keys.isValidCode(format.code, over: Array(bytes.dropLast(KeyringFormat.codeLength))) else {
            throw KeyringFormat.corrupt("its authentication code does not match")
        }
        entries = format.entries
    }

    /// Returns the bytes of the keyring file.
    package func serialized() -> [UInt8] {
        let bytes = KeyringFormat.authenticatedBytes(header: header, entries: entries, digest: KeyringKeys.digest)
        return bytes + keys.code(over: bytes)
    }

    /// The names in order, with their fields.
    package var contents: [(name: String, fields: [String])] {
        var contents: [(name: String, fields: [String])] = []
        for entry in entries {
            if contents.last?.name == entry.name {
                contents[contents.count - 1].fields.append(entry.field)
            } else {
                contents.append((entry.name, [entry.field]))
            }
        }
        return contents
    }

    /// Returns the value of that name and field, if there is one.
    package func value(of name: String, _ field: String) throws(KeyringError) -> Secret? {
        guard let entry = entries.first(where: { $0.name == name && $0.field == field }) else { return nil }
        return try keys.open(entry)
    }

    /// Returns all fields of that name, if there are any.
    package func credential(named name: String) throws(KeyringError) -> Credential? {
        var fields: [String: Secret] = [:]
        for entry in entries where entry.name == name { fields[entry.field] = try keys.open(entry) }
        return fields.isEmpty ? nil : Credential(name: name, fields: fields)
    }

    /// Stores `value`, replacing an earlier value of the field.
    package mutating func set(_ value: Secret, for name: String, _ field: String) throws(KeyringError) {
        for text in [name, field] where !Self.isUsable(text) {
            throw KeyringError(
                .invalid,
                "use 1 to 255 bytes for a name and a field, without control characters, white space and slashes")
        }
        try value.requireOneLine("a value")
        guard value.count <= 1 << 20 else { throw KeyringError(.invalid, "the value exceeds 1 MiB") }
        let entry = try keys.seal(value, name: name, field: field)
        var changed = entries.filter { $0.name != name || $0.field != field }
        let index = changed.firstIndex { ($0.name, $0.field) > (name, field) } ?? changed.endIndex
        changed.insert(entry, at: index)
        let total = changed.reduce(0) { $0 + $1.ciphertext.count + 1024 }
        guard total <= KeyringFormat.limit else { throw KeyringError(.invalid, "the keyring is full (16 MiB)") }
        entries = changed
    }

    /// Removes one field, or all fields of the name if `field` is `nil`. Returns true if there was one.
    package mutating func remove(_ name: String, _ field: String? = nil) -> Bool {
        let before = entries.count
        entries.removeAll { $0.name == name && (field == nil || $0.field == field) }
        return entries.count < before
    }

    /// Returns a keyring with the same values, a new passphrase, a new salt and new keys.
    package func rekeyed(
        passphrase: Secret, cost: ScryptCost = .standard
    ) throws(KeyringError) -> Keyring {
        var other = try Keyring(passphrase: passphrase, cost: cost)
        for entry in entries {
            other.entries.append(try other.keys.seal(keys.open(entry), name: entry.name, field: entry.field))
        }
        return other
    }

    private static func isUsable(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy {
                $0.value > 0x20 && !(0x7F...0xA0).contains($0.value) && $0 != "/" && !$0.properties.isWhitespace
            }
    }
}

extension Secret {
    /// Throws `invalid` for text of several lines, because no prompt accepts such a text.
    ///
    /// Usually more was piped in than intended. PEM has several lines, and bytes that are not UTF-8 (a keytab, a random key) are
    /// not text; both are accepted.
    func requireOneLine(_ what: String) throws(KeyringError) {
        let (lines, isPEM) = withBytes { bytes in
            var breaks = 0
            for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") {
                breaks += 1
            }
            let start = Array("-----BEGIN ".utf8)
            let isPEM = bytes.count >= start.count && start.indices.allSatisfy { bytes[$0] == start[$0] }
            return (breaks, isPEM)
        }
        guard lines > 0, !isPEM, String(validating: revealBytes(), as: UTF8.self) != nil else { return }
        throw KeyringError(
            .invalid,
            "\(what) must be one line, and this one contains a line break (a final one is removed); nothing was changed. "
                + "Only PEM and binary values may have several lines")
    }
}

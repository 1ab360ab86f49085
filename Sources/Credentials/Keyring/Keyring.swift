// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

/// An open keyring: values by name and field, each sealed until it is asked for. A value; `KeyringFile` is what is on disk.
package struct Keyring: Sendable {
    private let header: KeyringFormat.Header
    private let keys: KeyringKeys
    private var entries: [KeyringFormat.Entry]

    /// An empty keyring under `passphrase`, with a salt of its own.
    package init(passphrase: Secret, cost: ScryptCost = .standard) throws(KeyringError) {
        let salt = Sealing.randomBytes(16)
        keys = try KeyringKeys(passphrase: passphrase, cost: cost, salt: salt)
        header = KeyringFormat.Header(cost: cost, salt: salt, check: keys.check)
        entries = []
    }

    /// The keyring that `bytes` hold. The keys of `previous` are used where it is another state of the same keyring,
    /// which spares the derivation.
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
        guard keys.isCode(format.code, over: Array(bytes.dropLast(KeyringFormat.codeLength))) else {
            throw KeyringFormat.corrupt("its code does not fit its content")
        }
        entries = format.entries
    }

    /// The whole as it is written to a file.
    package func serialized() -> [UInt8] {
        let bytes = KeyringFormat.authenticatedBytes(header: header, entries: entries, digest: KeyringKeys.digest)
        return bytes + keys.code(over: bytes)
    }

    /// What is kept, in order: names, and the fields of each.
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

    /// The value of that name and field, if there is one.
    package func value(of name: String, _ field: String) throws(KeyringError) -> Secret? {
        guard let entry = entries.first(where: { $0.name == name && $0.field == field }) else { return nil }
        return try keys.open(entry)
    }

    /// All fields of that name, if there are any.
    package func credential(named name: String) throws(KeyringError) -> Credential? {
        var fields: [String: Secret] = [:]
        for entry in entries where entry.name == name { fields[entry.field] = try keys.open(entry) }
        return fields.isEmpty ? nil : Credential(name: name, fields: fields)
    }

    /// Keeps `value` in the place of what was there.
    package mutating func set(_ value: Secret, for name: String, _ field: String) throws(KeyringError) {
        for text in [name, field] where !Self.isUsable(text) {
            throw KeyringError(
                .invalid, "a name and a field have 1 to 255 bytes, without control characters, white space or slashes")
        }
        try value.requireOneLine("a value")
        guard value.count <= 1 << 20 else { throw KeyringError(.invalid, "a value has at most 1 MiB") }
        let entry = try keys.seal(value, name: name, field: field)
        var changed = entries.filter { $0.name != name || $0.field != field }
        let place = changed.firstIndex { ($0.name, $0.field) > (name, field) } ?? changed.endIndex
        changed.insert(entry, at: place)
        let total = changed.reduce(0) { $0 + $1.ciphertext.count + 1024 }
        guard total <= KeyringFormat.limit else { throw KeyringError(.invalid, "the keyring is full (16 MiB)") }
        entries = changed
    }

    /// Removes one field, or all of that name where `field` is `nil`; says whether there was one.
    package mutating func remove(_ name: String, _ field: String? = nil) -> Bool {
        let before = entries.count
        entries.removeAll { $0.name == name && (field == nil || $0.field == field) }
        return entries.count < before
    }

    /// The same values under another passphrase, with a fresh salt and fresh keys.
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

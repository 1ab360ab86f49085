// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The bytes of a keyring file, version 1. Numbers are big-endian, texts UTF-8.
///
/// | offset | length | what |
/// |---|---|---|
/// | 0 | 8 | `CSIGNKEY` |
/// | 8 | 1 | version, 1 |
/// | 9 | 3 | scrypt's log2 N, r, p (RFC 7914 §2) |
/// | 12 | 16 | salt, drawn when the keyring is created or gets another passphrase |
/// | 28 | 16 | check: derived from the passphrase, tells a wrong one |
/// | 44 | 4 | number of entries |
/// | 48 | 4 | length L of all entries, in bytes |
/// | 52 | 32 | SHA-256 of bytes 0 to 51; tells damage here from a wrong passphrase |
/// | 84 | L | entries, ordered by name and field |
/// | 84 + L | 32 | HMAC-SHA256 of all before |
///
/// An entry: name and field (each 2 bytes of length, then the text), nonce (12), length of the value (4), the value under
/// AES-256-GCM, tag (16). The associated data are `countersign keyring 1`, a zero byte, and name and field as they stand
/// in the entry, so that no value can be moved under another name.
///
/// Protected: values against reading; everything against change by whoever lacks the passphrase: parameters, names,
/// the set of entries and their order, also against an entry of an older copy of the same keyring. Not protected: names,
/// fields and the length of values can be read, and an older copy of the whole file can be put in its place.
struct KeyringFormat: Equatable {
    /// One value, sealed.
    struct Entry: Equatable {
        var name: String
        var field: String
        var nonce: [UInt8]
        var ciphertext: [UInt8]
        var tag: [UInt8]
    }

    /// The part before the entries.
    struct Header: Equatable {
        var cost: ScryptCost
        var salt: [UInt8]
        var check: [UInt8]
    }

    static let magic = Array("CSIGNKEY".utf8)
    static let version: UInt8 = 1
    static let headerLength = 84
    static let codeLength = 32
    /// The largest file, in bytes.
    static let limit = 16 << 20

    var header: Header
    var entries: [Entry]
    /// The HMAC that stood in the file.
    var code: [UInt8]

    /// Parses everything that needs no key.
    init(parsing bytes: [UInt8], digest: ([UInt8]) -> [UInt8]) throws(KeyringError) {
        var reader = ByteReader(bytes)
        guard let magic = reader.take(8) else {
            throw Self.magic.starts(with: bytes) ? Self.truncated : Self.foreign
        }
        guard magic == Self.magic else { throw Self.foreign }
        guard let version = reader.number(1) else { throw Self.truncated }
        guard version == Self.version else {
            throw KeyringError(
                .unsupported, "it has version \(version), this program knows version \(Self.version) only; update it")
        }
        guard let cost = reader.take(3), let salt = reader.take(16), let check = reader.take(16),
            let count = reader.number(4), let length = reader.number(4), let sum = reader.take(32)
        else { throw Self.truncated }
        guard digest(Array(bytes[0..<52])) == sum else { throw Self.corrupt("its header is damaged") }
        self.header = Header(cost: try ScryptCost(parameters: cost), salt: salt, check: check)
        let expected = Self.headerLength + length + Self.codeLength
        guard bytes.count >= expected else { throw Self.truncated }
        guard bytes.count == expected else { throw Self.corrupt("bytes follow its end") }
        guard let region = reader.take(length), let code = reader.take(Self.codeLength) else { throw Self.truncated }
        self.code = code
        self.entries = try Self.entries(in: region, count: count)
    }

    /// What is to be written, without the code at its end.
    static func authenticatedBytes(header: Header, entries: [Entry], digest: ([UInt8]) -> [UInt8]) -> [UInt8] {
        var region: [UInt8] = []
        for entry in entries {
            region += identity(name: entry.name, field: entry.field) + entry.nonce
            region.append(number: entry.ciphertext.count, bytes: 4)
            region += entry.ciphertext + entry.tag
        }
        var bytes = magic + [version] + header.cost.parameters + header.salt + header.check
        bytes.append(number: entries.count, bytes: 4)
        bytes.append(number: region.count, bytes: 4)
        bytes += digest(bytes)
        return bytes + region
    }

    /// What a value is bound to.
    static func associatedData(name: String, field: String) -> [UInt8] {
        Array("countersign keyring 1".utf8) + [0] + identity(name: name, field: field)
    }

    /// The error for bytes that are not those that were written.
    static func corrupt(_ what: String) -> KeyringError {
        KeyringError(
            .corrupt, "the keyring is damaged or was changed by another program (\(what)); restore a copy of it")
    }

    private static let truncated = KeyringError(
        .truncated, "the keyring ends too early; it was cut off. Restore a copy of it")
    private static let foreign = KeyringError(
        .notAKeyring, "this is no keyring; check the path, or make one with: countersign keyring init")

    private static func identity(name: String, field: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for text in [name, field] {
            bytes.append(number: text.utf8.count, bytes: 2)
            bytes += text.utf8
        }
        return bytes
    }

    private static func entries(in region: [UInt8], count: Int) throws(KeyringError) -> [Entry] {
        var reader = ByteReader(region)
        var entries: [Entry] = []
        // `count` is not trusted to reserve memory: each entry has to be there.
        while !reader.isAtEnd {
            guard let name = reader.text(lengthBytes: 2), let field = reader.text(lengthBytes: 2),
                let nonce = reader.take(12), let length = reader.number(4),
                let ciphertext = reader.take(length), let tag = reader.take(16)
            else { throw corrupt("an entry is incomplete") }
            entries.append(Entry(name: name, field: field, nonce: nonce, ciphertext: ciphertext, tag: tag))
        }
        guard entries.count == count else { throw corrupt("its entries do not agree with its header") }
        return entries
    }
}

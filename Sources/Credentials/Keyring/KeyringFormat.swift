// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Binary format of a keyring file, version 1. Numbers are big-endian, texts UTF-8.
///
/// | offset | length | content |
/// |---|---|---|
/// | 0 | 8 | `CSIGNKEY` |
/// | 8 | 1 | version, 1 |
/// | 9 | 3 | scrypt's log2 N, r, p (RFC 7914 §2) |
/// | 12 | 16 | salt, random for each new keyring or passphrase |
/// | 28 | 16 | check value, derived from the passphrase to detect a wrong one |
/// | 44 | 4 | number of entries |
/// | 48 | 4 | length L of all entries, in bytes |
/// | 52 | 32 | SHA-256 of bytes 0 to 51, to distinguish a damaged header from a wrong passphrase |
/// | 84 | L | entries, ordered by name and field |
/// | 84 + L | 32 | HMAC-SHA256 of all preceding bytes |
///
/// An entry consists of name and field (each 2 bytes of length, then the text), nonce (12), length of the value (4), the value
/// encrypted with AES-256-GCM, and tag (16). The associated data are `countersign keyring 1`, a zero byte, and name and field as
/// encoded in the entry, so a value cannot be moved under another name.
///
/// Values are confidential. Without the passphrase, no change is possible: not of parameters, names, or the set and order of
/// entries, nor with an entry from an older copy of the keyring. Not protected are names, fields and the lengths of values, which
/// can be read, and the replacement of the whole file by an older copy.
struct KeyringFormat: Equatable {
    /// A sealed value.
    struct Entry: Equatable {
        var name: String
        var field: String
        var nonce: [UInt8]
        var ciphertext: [UInt8]
        var tag: [UInt8]
    }

    /// The header, which precedes the entries.
    struct Header: Equatable {
        var cost: ScryptCost
        var salt: [UInt8]
        var check: [UInt8]
    }

    static let magic = Array("CSIGNKEY".utf8)
    static let version: UInt8 = 1
    static let headerLength = 84
    static let codeLength = 32
    /// The maximum size of a file, in bytes.
    static let limit = 16 << 20

    var header: Header
    var entries: [Entry]
    /// The HMAC stored in the file.
    var code: [UInt8]

    /// Parses all parts that need no key.
    init(parsing bytes: [UInt8], digest: ([UInt8]) -> [UInt8]) throws(KeyringError) {
        var reader = ByteReader(bytes)
        guard let magic = reader.read(8) else {
            throw Self.magic.starts(with: bytes) ? Self.truncated : Self.foreign
        }
        guard magic == Self.magic else { throw Self.foreign }
        guard let version = reader.number(1) else { throw Self.truncated }
        guard version == Self.version else {
            throw KeyringError(
                .unsupported,
                "the keyring has version \(version), but this program supports only \(Self.version); update the program"
            )
        }
        guard let cost = reader.read(3), let salt = reader.read(16), let check = reader.read(16),
            let count = reader.number(4), let length = reader.number(4), let sum = reader.read(32)
        else { throw Self.truncated }
        guard digest(Array(bytes[0..<52])) == sum else { throw Self.corrupt("its header is damaged") }
        self.header = Header(cost: try ScryptCost(parameters: cost), salt: salt, check: check)
        let expected = Self.headerLength + length + Self.codeLength
        guard bytes.count >= expected else { throw Self.truncated }
        guard bytes.count == expected else { throw Self.corrupt("bytes follow its end") }
        guard let region = reader.read(length), let code = reader.read(Self.codeLength) else { throw Self.truncated }
        self.code = code
        self.entries = try Self.entries(in: region, count: count)
    }

    /// Returns the bytes of a file without the final authentication code.
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

    /// Returns the associated data that bind a value to its name and field.
    static func associatedData(name: String, field: String) -> [UInt8] {
        Array("countersign keyring 1".utf8) + [0] + identity(name: name, field: field)
    }

    /// Returns the error for damaged or modified bytes.
    static func corrupt(_ what: String) -> KeyringError {
        KeyringError(
            .corrupt, "the keyring is damaged or was changed by another program (\(what)); restore a backup")
    }

    private static let truncated = KeyringError(
        .truncated, "the keyring is truncated; restore a backup")
    private static let foreign = KeyringError(
        .notAKeyring, "the file is not a keyring; check the path, or create one with: countersign keyring init")

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
        // `count` is not trusted for reserving memory.
        while !reader.isAtEnd {
            guard let name = reader.text(lengthBytes: 2), let field = reader.text(lengthBytes: 2),
                let nonce = reader.read(12), let length = reader.number(4),
                let ciphertext = reader.read(length), let tag = reader.read(16)
            else { throw corrupt("an entry is incomplete") }
            entries.append(Entry(name: name, field: field, nonce: nonce, ciphertext: ciphertext, tag: tag))
        }
        guard entries.count == count else { throw corrupt("its entries do not match its header") }
        return entries
    }
}

/// Reader of a binary format; missing bytes give `nil`.
struct ByteReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position == bytes.count }

    /// Reads the next `count` bytes.
    mutating func read(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= bytes.count - position else { return nil }
        defer { position += count }
        return Array(bytes[position..<position + count])
    }

    /// Reads a big-endian number of at most four bytes.
    mutating func number(_ count: Int) -> Int? {
        read(count)?.reduce(0) { $0 << 8 | Int($1) }
    }

    /// Reads a text with a length prefix; `nil` also for invalid UTF-8.
    mutating func text(lengthBytes: Int) -> String? {
        guard let length = number(lengthBytes), let bytes = read(length) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Appends the low `bytes` bytes of `number`, big-endian.
    mutating func append(number: Int, bytes: Int) {
        for index in (0..<bytes).reversed() {
            append(UInt8(truncatingIfNeeded: number >> (8 * index)))
        }
    }
}

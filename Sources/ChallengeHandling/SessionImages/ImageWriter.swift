// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Writes the parts of a session image: numbers big-endian, texts and secrets after their length. Leaves no copy of a secret.
struct ImageWriter: ~Copyable {
    private var bytes = SecretBuilder(capacity: 1024)

    mutating func append(byte: UInt8) { bytes.append(byte) }

    mutating func append(_ number: UInt16) { append(UInt64(number), bytes: 2) }

    mutating func append(_ number: UInt32) { append(UInt64(number), bytes: 4) }

    mutating func append(_ number: Int64) { append(UInt64(bitPattern: number), bytes: 8) }

    mutating func append(_ isSet: Bool) { append(byte: isSet ? 1 : 0) }

    /// A flag, and the number where there is one.
    mutating func append(_ number: Int64?) {
        append(number != nil)
        if let number { append(number) }
    }

    mutating func append(_ text: String) {
        append(UInt32(clamping: text.utf8.count))
        bytes.append(text)
    }

    mutating func append(_ digest: [UInt8]) {
        append(UInt32(clamping: digest.count))
        bytes.append(digest)
    }

    mutating func append(_ secret: Secret) {
        append(UInt32(clamping: secret.count))
        bytes.append(secret)
    }

    mutating func append(_ origin: Origin) {
        append(byte: origin.scheme == .https ? 1 : 0)
        append(origin.host)
        append(origin.port)
    }

    /// Bytes as they are, without their length.
    mutating func append(raw: some Collection<UInt8>) { bytes.append(raw) }

    consuming func finish() -> Secret { bytes.finish() }

    private mutating func append(_ number: UInt64, bytes count: Int) {
        for index in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))) }
    }
}

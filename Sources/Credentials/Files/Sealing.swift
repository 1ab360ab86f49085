// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Crypto
internal import FoundationEssentials
package import Secrets

/// AES-256-GCM (NIST SP 800-38D) for secrets, with a random nonce each time and no plain copies.
package enum Sealing {
    /// A sealed value.
    package struct Box: Equatable {
        /// The nonce, 12 bytes.
        package var nonce: [UInt8]
        /// The ciphertext, with the length of the value.
        package var ciphertext: [UInt8]
        /// The authentication tag, 16 bytes.
        package var tag: [UInt8]

        /// The nonce, the ciphertext and the tag in this order.
        package var bytes: [UInt8] { nonce + ciphertext + tag }

        /// Creates a box from its parts.
        package init(nonce: [UInt8], ciphertext: [UInt8], tag: [UInt8]) {
            self.nonce = nonce
            self.ciphertext = ciphertext
            self.tag = tag
        }

        /// Creates a box from `bytes`; `nil` if they are too few.
        package init?(_ bytes: ArraySlice<UInt8>) {
            guard bytes.count >= 28 else { return nil }
            self.init(
                nonce: Array(bytes.prefix(12)), ciphertext: Array(bytes.dropFirst(12).dropLast(16)),
                tag: Array(bytes.suffix(16)))
        }
    }

    /// Seals `value`; `nil` if the encryption fails.
    package static func seal(_ value: Secret, key: SymmetricKey, associated: [UInt8]) -> Box? {
        value.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                let sealed = unsafe try? AES.GCM.seal(bytes, using: key, authenticating: associated)
                return sealed.map { Box(nonce: Array($0.nonce), ciphertext: Array($0.ciphertext), tag: Array($0.tag)) }
            }
        }
    }

    /// Opens `box`; `nil` for another key, other associated data, or modified bytes.
    package static func open(_ box: Box, key: SymmetricKey, associated: [UInt8]) -> Secret? {
        guard let nonce = try? AES.GCM.Nonce(data: box.nonce),
            let sealed = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: box.ciphertext, tag: box.tag),
            var opened = try? AES.GCM.open(sealed, using: key, authenticating: associated)
        else { return nil }
        defer { opened.resetBytes(in: opened.startIndex..<opened.endIndex) }
        return Secret(opened)
    }

    /// Returns random bytes of the system.
    static func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in generator.next() }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto
internal import FoundationEssentials
internal import Secrets

/// AES-256-GCM (NIST SP 800-38D) over secrets, with a fresh random nonce each time and no copies left in the clear.
enum Sealing {
    /// A sealed value.
    struct Box: Equatable {
        /// 12 bytes.
        var nonce: [UInt8]
        /// As long as the value.
        var ciphertext: [UInt8]
        /// 16 bytes.
        var tag: [UInt8]
    }

    /// Seals `value`; `nil` should the library refuse.
    static func seal(_ value: Secret, key: SymmetricKey, associated: [UInt8]) -> Box? {
        value.withBytes { bytes in
            unsafe bytes.withUnsafeBytes { bytes in
                let sealed = unsafe try? AES.GCM.seal(bytes, using: key, authenticating: associated)
                return sealed.map { Box(nonce: Array($0.nonce), ciphertext: Array($0.ciphertext), tag: Array($0.tag)) }
            }
        }
    }

    /// Opens `box`; `nil` where key or associated data are others, or a bit was changed.
    static func open(_ box: Box, key: SymmetricKey, associated: [UInt8]) -> Secret? {
        guard let nonce = try? AES.GCM.Nonce(data: box.nonce),
            let sealed = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: box.ciphertext, tag: box.tag),
            var opened = try? AES.GCM.open(sealed, using: key, authenticating: associated)
        else { return nil }
        defer { opened.resetBytes(in: opened.startIndex..<opened.endIndex) }
        return Secret(opened)
    }

    /// Random bytes from the system.
    static func randomBytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in generator.next() }
    }
}

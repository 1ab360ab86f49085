// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets

// What is not kept in the directory but handed to somebody who keeps it: sealed in the same way, under the same key, so that memory
// which is swapped out holds nothing in the clear, and what comes back is what was given away.
extension SealedStateStore {
    /// `value` sealed under `name`, in the form of a file of that name; `nil` should the library refuse.
    package func sealed(_ value: Secret, as name: String) -> [UInt8]? {
        Sealing.seal(value, key: key, associated: Self.associatedData(name)).map { box in
            Self.magic + box.nonce + box.ciphertext + box.tag
        }
    }

    /// The value that was sealed under `name`; `nil` for anything else, and under another key.
    package func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        var reader = ByteReader(bytes)
        guard reader.take(Self.magic.count) == Self.magic, let nonce = reader.take(12),
            let ciphertext = reader.take(bytes.count - Self.magic.count - 28), let tag = reader.take(16)
        else { return nil }
        let box = Sealing.Box(nonce: nonce, ciphertext: ciphertext, tag: tag)
        return Sealing.open(box, key: key, associated: Self.associatedData(name))
    }
}

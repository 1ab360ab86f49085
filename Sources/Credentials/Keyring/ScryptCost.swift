// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How dear one try of a passphrase is (RFC 7914 §2). Only within bounds: a file from elsewhere must not be able to
/// take all memory.
package struct ScryptCost: Sendable, Equatable {
    /// The binary logarithm of N; N = 2^15 takes 32 MiB.
    let log2N: UInt8
    /// The block size, 8.
    let blockSize: UInt8 = 8
    /// The parallelism, 1.
    let parallelism: UInt8 = 1

    /// What new keyrings are written with.
    package static let standard = ScryptCost(known: 15)
    /// The least that is accepted; for tests, as each derivation takes only a millisecond or two.
    package static let least = ScryptCost(known: 10)
    /// The most that is accepted: 256 MiB, about a second.
    static let most = ScryptCost(known: 18)

    private init(known log2N: UInt8) {
        self.log2N = log2N
    }

    /// From the three bytes of a header.
    init(parameters: [UInt8]) throws(KeyringError) {
        guard parameters.count == 3, parameters[1] == 8, parameters[2] == 1,
            (Self.least.log2N...Self.most.log2N).contains(parameters[0])
        else {
            throw KeyringError(
                .unsupported,
                "it asks for scrypt parameters that are refused (N = 2^10 to 2^18, r = 8 and p = 1 are accepted)")
        }
        log2N = parameters[0]
    }

    /// The three bytes of a header.
    var parameters: [UInt8] { [log2N, blockSize, parallelism] }
}

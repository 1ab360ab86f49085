// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// SipHash-2-4 (Aumasson and Bernstein, 2012) under a random key, which only this process has.
///
/// Without the key nobody can find two texts with one hash, nor guess anything about a text from the time that a look-up of
/// its hash takes.
struct KeyedHash: Sendable {
    /// 16 bytes. A secret, so that a core dump with hashes does not have the key.
    private let key: Secret

    /// Creates a hash with a random key.
    init() {
        var random = SystemRandomNumberGenerator()
        var key = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        self.init(taking: &key)
    }

    /// Creates a hash with the 16 bytes of `key`, which are overwritten.
    init(taking key: inout [UInt8]) { self.key = Secret(taking: &key) }

    /// Returns the hash of `bytes`.
    func callAsFunction(_ bytes: Span<UInt8>) -> UInt64 {
        var state = key.withBytes { SipState(Self.word($0, at: 0, 8), Self.word($0, at: 8, 8)) }
        var index = 0
        while index + 8 <= bytes.count {
            state.take(Self.word(bytes, at: index, 8))
            index += 8
        }
        state.take(Self.word(bytes, at: index, bytes.count - index) | UInt64(bytes.count & 0xFF) << 56)
        return state.finish()
    }

    /// Returns up to eight bytes as a number, the first one lowest.
    private static func word(_ bytes: Span<UInt8>, at start: Int, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<count { word |= UInt64(bytes[start + offset]) << UInt64(8 * offset) }
        return word
    }
}

private struct SipState {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64

    init(_ k0: UInt64, _ k1: UInt64) {
        v0 = k0 ^ 0x736F_6D65_7073_6575
        v1 = k1 ^ 0x646F_7261_6E64_6F6D
        v2 = k0 ^ 0x6C79_6765_6E65_7261
        v3 = k1 ^ 0x7465_6462_7974_6573
    }

    mutating func take(_ word: UInt64) {
        v3 ^= word
        for _ in 0..<2 { round() }
        v0 ^= word
    }

    mutating func finish() -> UInt64 {
        v2 ^= 0xFF
        for _ in 0..<4 { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }

    private mutating func round() {
        v0 &+= v1
        v1 = Self.rotated(v1, 13) ^ v0
        v0 = Self.rotated(v0, 32)
        v2 &+= v3
        v3 = Self.rotated(v3, 16) ^ v2
        v0 &+= v3
        v3 = Self.rotated(v3, 21) ^ v0
        v2 &+= v1
        v1 = Self.rotated(v1, 17) ^ v2
        v2 = Self.rotated(v2, 32)
    }

    private static func rotated(_ word: UInt64, _ bits: UInt64) -> UInt64 { word << bits | word >> (64 - bits) }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Proxy

@Suite("The keyed hash of callers' tokens")
struct KeyedHashTests {
    @Test(
        "SipHash-2-4 has the published values for 00, 01, 02 … under the key 00 to 0f",
        arguments: [
            (0, 0x726F_DB47_DD0E_0E31), (1, 0x74F8_39C5_93DC_67FD), (7, 0xAB02_00F5_8B01_D137),
            (8, 0x93F5_F579_9A93_2462), (15, 0xA129_CA61_49BE_45E5),
        ] as [(Int, UInt64)])
    func published(count: Int, hash: UInt64) {
        var key = (0..<16).map { UInt8($0) }
        let bytes = (0..<count).map { UInt8($0) }
        #expect(KeyedHash(taking: &key)(bytes.span) == hash)
        #expect(key.isEmpty, "the key is not left in ordinary memory")
    }

    @Test("each hash has a key of its own, so that nobody outside knows a text's hash")
    func keys() {
        let bytes = Array("0123456789abcdef".utf8)
        let (one, two) = (KeyedHash(), KeyedHash())
        #expect(one(bytes.span) == one(bytes.span))
        #expect(one(bytes.span) != two(bytes.span))
    }
}

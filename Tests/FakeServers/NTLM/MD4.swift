// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The digest that NTLM makes of a password (RFC 1320). Broken long ago, and in no library that is still kept: it is here for
/// the fake alone.
func md4(_ message: [UInt8]) -> [UInt8] {
    var padded = message + [0x80]
    while padded.count % 64 != 56 { padded.append(0) }
    let bits = UInt64(message.count) &* 8
    padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64($0 * 8)) }
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
    for block in stride(from: 0, to: padded.count, by: 64) {
        let words = (0..<16).map { word in
            (0..<4).reduce(UInt32(0)) { $0 | UInt32(padded[block + word * 4 + $1]) << UInt32($1 * 8) }
        }
        let sums = rounds(state, words)
        for index in 0..<4 { state[index] &+= sums[index] }
    }
    return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32($0 * 8)) } }
}

/// The three rounds over one block (RFC 1320 §3.4).
private func rounds(_ state: [UInt32], _ words: [UInt32]) -> [UInt32] {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    func step(_ mixed: UInt32, _ word: Int, _ constant: UInt32, _ shift: UInt32) {
        let sum = a &+ mixed &+ words[word] &+ constant
        (a, b, c, d) = (d, sum << shift | sum >> (32 - shift), b, c)
    }
    let shifts: [[UInt32]] = [[3, 7, 11, 19], [3, 5, 9, 13], [3, 9, 11, 15]]
    let third = [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]
    for index in 0..<16 { step((b & c) | (~b & d), index, 0, shifts[0][index % 4]) }
    for index in 0..<16 {
        step((b & c) | (b & d) | (c & d), index % 4 * 4 + index / 4, 0x5A82_7999, shifts[1][index % 4])
    }
    for index in 0..<16 { step(b ^ c ^ d, third[index], 0x6ED9_EBA1, shifts[2][index % 4]) }
    return [a, b, c, d]
}

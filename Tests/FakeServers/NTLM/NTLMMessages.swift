// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto

/// What a client says last: who it is, and that it knows the password (MS-NLMP §2.2.1.3).
struct NTLMAnswer: Equatable {
    var user: String
    var domain: String
    /// The proof, and the bytes that it is about (MS-NLMP §2.2.2.8).
    var proof: [UInt8]
    var blob: [UInt8]

    /// Parses an AUTHENTICATE_MESSAGE with an answer of NTLM version 2; `nil` where it is none.
    init?(parsing message: [UInt8]) {
        guard NTLMMessage.kind(of: message) == 3, let answer = Self.field(at: 20, of: message), answer.count > 16,
            let domain = Self.field(at: 28, of: message), let user = Self.field(at: 36, of: message)
        else { return nil }
        proof = Array(answer.prefix(16))
        blob = Array(answer.dropFirst(16))
        self.user = String(decoding: Self.units(user), as: UTF16.self)
        self.domain = String(decoding: Self.units(domain), as: UTF16.self)
    }

    /// Whether it was made with that password and for that challenge (MS-NLMP §3.3.2).
    func knows(_ password: String, challenge: [UInt8]) -> Bool {
        let owner = NTLMMessage.utf16(user.uppercased() + domain)
        let key = Self.code(owner, key: md4(NTLMMessage.utf16(password)))
        return Self.code(challenge + blob, key: key) == proof
    }

    private static func code(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        Array(HMAC<Insecure.MD5>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    }

    /// Length, room and place of a field stand in eight bytes of the head.
    private static func field(at place: Int, of message: [UInt8]) -> [UInt8]? {
        guard message.count >= place + 8 else { return nil }
        let length = Int(message[place]) | Int(message[place + 1]) << 8
        let start = (0..<4).reduce(0) { $0 | Int(message[place + 4 + $1]) << ($1 * 8) }
        guard start <= message.count, length <= message.count - start else { return nil }
        return Array(message[start..<(start + length)])
    }

    private static func units(_ bytes: [UInt8]) -> [UInt16] {
        stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 }
    }
}

/// What both sides' messages have in common, and the one of the server.
enum NTLMMessage {
    private static let signature = Array("NTLMSSP\0".utf8)

    /// Which of the three messages it is; `nil` where it is none.
    static func kind(of message: [UInt8]) -> Int? {
        guard message.count >= 12, message.starts(with: signature) else { return nil }
        return Int(message[8])
    }

    /// CHALLENGE_MESSAGE (MS-NLMP §2.2.1.2) of the domain DEMO, with what asks for version 2.
    static func challenge(_ challenge: [UInt8]) -> [UInt8] {
        let name = utf16("DEMO")
        // MsvAvNbDomainName, MsvAvNbComputerName, MsvAvEOL (MS-NLMP §2.2.2.1).
        let pairs: [(kind: UInt32, value: [UInt8])] = [(2, name), (1, name), (0, [])]
        let info = pairs.flatMap { little($0.kind, 2) + little(UInt32($0.value.count), 2) + $0.value }
        // Unicode, a target, NTLM, a domain, extended session security, target information, 128 bits.
        let flags: UInt32 = 0x1 | 0x4 | 0x200 | 0x1_0000 | 0x8_0000 | 0x80_0000 | 0x2000_0000
        let head = 48
        return signature + little(2, 4) + field(name.count, at: head) + little(flags, 4) + challenge
            + [UInt8](repeating: 0, count: 8) + field(info.count, at: head + name.count) + name + info
    }

    static func utf16(_ text: String) -> [UInt8] { text.utf16.flatMap { little(UInt32($0), 2) } }

    private static func field(_ length: Int, at place: Int) -> [UInt8] {
        little(UInt32(length), 2) + little(UInt32(length), 2) + little(UInt32(place), 4)
    }

    private static func little(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32($0 * 8)) }
    }
}

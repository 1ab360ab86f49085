// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto
internal import Synchronization

/// An area with NTLM (MS-NTHT): user ann, password demo, any domain. It authenticates connections, not requests.
final class NTLMArea: Sendable {
    private enum Step {
        case challenged([UInt8])
        case authenticated
    }

    private let recorder: Recorder
    /// The latest connections that have got somewhere, by their numbers.
    private let states = Mutex<[UInt64: Step]>([:])
    private static let limit = 1024

    init(recorder: Recorder) { self.recorder = recorder }

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        guard let written = request.authorization("NTLM") else {
            if case .authenticated = state(of: request) { return inside(request) }
            recorder.note { $0.challenges["ntlm", default: 0] += 1 }
            return unauthorized("NTLM")
        }
        let message = Base64.decode(written) ?? []
        if NTLMMessage.kind(of: message) == 1 {
            let challenge = (0..<8).map { _ in UInt8.random(in: 0...255) }
            set(.challenged(challenge), of: request)
            return unauthorized("NTLM \(Base64.encode(NTLMMessage.challenge(challenge)))")
        }
        guard case .challenged(let challenge) = state(of: request), let answer = NTLMAnswer(parsing: message) else {
            recorder.note { $0.violations.append("\(request.path): an NTLM message out of its order") }
            return unauthorized("NTLM")
        }
        let isRight = answer.user == "ann" && answer.knows("demo", challenge: challenge)
        set(isRight ? .authenticated : nil, of: request)
        recorder.note { record in
            record.answers["ntlm", default: []].append(["user": .string(answer.user)])
            if isRight {
                record.logins["ntlm", default: 0] += 1
            } else {
                record.wrongAnswers["ntlm", default: 0] += 1
            }
        }
        return isRight ? inside(request) : unauthorized("NTLM")
    }

    private func unauthorized(_ challenge: String) -> FakeResponse {
        .text(401, "Please say who you are.\n", fields: [("WWW-Authenticate", challenge)])
    }

    private func state(of request: FakeRequest) -> Step? { states.withLock { $0[request.connection] } }

    private func set(_ step: Step?, of request: FakeRequest) {
        states.withLock { states in
            states[request.connection] = step
            if states.count > Self.limit, let oldest = states.keys.min() { states[oldest] = nil }
        }
    }
}

/// The client's last message: its user, and a proof of the password (MS-NLMP §2.2.1.3).
struct NTLMAnswer: Equatable {
    var user: String
    var domain: String
    /// The proof, and the bytes that it is about (MS-NLMP §2.2.2.8).
    var proof: [UInt8]
    var blob: [UInt8]

    /// Parses an AUTHENTICATE_MESSAGE with an answer of NTLM version 2; `nil` if the bytes are not one.
    init?(parsing message: [UInt8]) {
        guard NTLMMessage.kind(of: message) == 3, let answer = Self.field(at: 20, of: message), answer.count > 16,
            let domain = Self.field(at: 28, of: message), let user = Self.field(at: 36, of: message)
        else { return nil }
        proof = Array(answer.prefix(16))
        blob = Array(answer.dropFirst(16))
        self.user = String(decoding: Self.units(user), as: UTF16.self)
        self.domain = String(decoding: Self.units(domain), as: UTF16.self)
    }

    /// Returns true if the answer was made with that password and for that challenge (MS-NLMP §3.3.2).
    func knows(_ password: String, challenge: [UInt8]) -> Bool {
        let owner = NTLMMessage.utf16(user.uppercased() + domain)
        let key = Self.code(owner, key: md4(NTLMMessage.utf16(password)))
        return Self.code(challenge + blob, key: key) == proof
    }

    private static func code(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        Array(HMAC<Insecure.MD5>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    }

    /// Length, capacity and offset of a field are in eight bytes of the head.
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

/// The parts that both sides' messages have in common, and the server's message.
enum NTLMMessage {
    private static let signature = Array("NTLMSSP\0".utf8)

    /// Returns the number of the message, 1 to 3; `nil` if the bytes are not one.
    static func kind(of message: [UInt8]) -> Int? {
        guard message.count >= 12, message.starts(with: signature) else { return nil }
        return Int(message[8])
    }

    /// Returns a CHALLENGE_MESSAGE (MS-NLMP §2.2.1.2) of the domain DEMO that asks for version 2.
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

/// Returns NTLM's digest of a password (RFC 1320). Broken long ago, and no longer in any maintained library: it is here
/// for the fake alone.
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

/// Does the three rounds over one block (RFC 1320 §3.4).
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import Credentials

@Suite("One-time passwords")
struct OneTimePasswordTests {
    private static let sha1 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    private static let sha256 = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA===="
    private static let sha512 =
        "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNA="

    private func password(_ seed: String, at seconds: Int64) throws -> String {
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { seconds * 1000 })
        return try passwords.password(from: Secret(seed), of: "ann").revealText()
    }

    @Test(
        "are those of RFC 6238 appendix B",
        arguments: [
            (Int64(59), "94287082", "46119246", "90693936"), (1_111_111_109, "07081804", "68084774", "25091201"),
            (1_111_111_111, "14050471", "67062674", "99943326"), (1_234_567_890, "89005924", "91819424", "93441116"),
            (2_000_000_000, "69279037", "90698825", "38618901"), (20_000_000_000, "65353130", "77737706", "47863826"),
        ])
    func vectors(seconds: Int64, one: String, two: String, three: String) throws {
        let address = "otpauth://totp/Bank:ann?issuer=Bank&digits=8&secret="
        #expect(try password("\(address)\(Self.sha1)", at: seconds) == one)
        #expect(try password("\(address)\(Self.sha256)&algorithm=SHA256", at: seconds) == two)
        #expect(try password("\(address)\(Self.sha512)&algorithm=sha512&period=30", at: seconds) == three)
        #expect(try password(Self.sha1, at: seconds) == one.suffix(6))
    }

    @Test("a seed may be written in groups, in either case")
    func groups() throws {
        #expect(try password("gezd gnbv-gy3t qojq GEZD GNBV GY3T QOJQ", at: 59) == "287082")
    }

    @Test("the period is the server's")
    func period() throws {
        let address = "otpauth://totp/x?secret=\(Self.sha1)&period="
        #expect(try password(address + "60", at: 119) == password(Self.sha1, at: 59))
        #expect(try password(address + "60", at: 60) != password(Self.sha1, at: 60))
    }

    @Test(
        "what is no seed is told, without the seed",
        arguments: [
            "", "0189", "otpauth://hotp/x?secret=GEZDGNBV", "otpauth://totp/x?digits=6", "otpauth://totp/x",
            "otpauth://totp/x?secret=GEZDGNBV&digits=9", "otpauth://totp/x?secret=GEZDGNBV&period=0",
            "otpauth://totp/x?secret=GEZDGNBV&algorithm=MD5", "GEZDGNBV=GEZDGNBV",
        ])
    func malformed(seed: String) {
        let error = #expect(throws: TemplateError.self) { try password(seed, at: 59) }
        #expect(error?.reason.contains("\"ann\" ") == true && error?.reason.contains("GEZDGNBV") == false)
        #expect(error?.loginFailure(challenge: "bank").code == .noCredential)
    }

    @Test("a check uses no step up, and fails where the password would")
    func check() throws {
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { 61_000 })
        for _ in 0..<2 { try passwords.check(Secret(Self.sha1), of: "ann") }
        _ = try passwords.password(from: Secret(Self.sha1), of: "ann")
        #expect(throws: TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 90_000)) {
            try passwords.check(Secret(Self.sha1), of: "ann")
        }
        #expect(throws: TemplateError.self) { try passwords.check(Secret("0189"), of: "ann") }
    }

    @Test("no step is used twice, not after a restart either, and the next one is told")
    func once() throws {
        let clock = Clock(61_000)
        let store = try SealedAttemptStore(store: MemoryStore())
        func passwords() -> TimedPasswords {
            TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(store: store), now: { clock.now })
        }
        let first = passwords()
        _ = try first.password(from: Secret(Self.sha1), of: "ann")
        // Another seed has steps of its own.
        _ = try first.password(from: Secret("GEZDGNBVGY3TQOJR"), of: "bob")
        clock.now = 89_999
        for passwords in [first, passwords()] {
            #expect(throws: TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 90_000)) {
                try passwords.password(from: Secret(Self.sha1), of: "ann")
            }
        }
        clock.now = 90_000
        _ = try passwords().password(from: Secret(Self.sha1), of: "ann")
        // A clock that is set back a little must not open a step that was used.
        clock.now = 75_000
        #expect(throws: TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 120_000)) {
            try first.password(from: Secret(Self.sha1), of: "ann")
        }
    }

    @Test("a clock that was hours ahead blocks nobody once it is right")
    func wrongClock() throws {
        let clock = Clock(100_000_000)
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { clock.now })
        _ = try passwords.password(from: Secret(Self.sha1), of: "ann")
        clock.now = 10_000_000
        _ = try passwords.password(from: Secret(Self.sha1), of: "ann")
    }

    @Test("of many who ask at once, one gets the step")
    func together() async throws {
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { 61_000 })
        let got = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask { (try? passwords.password(from: Secret(Self.sha1), of: "ann")) != nil }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(got == 1)
    }

    @Test("the store gives them to credentials with a seed, and latches do not know them")
    func credentials() async throws {
        let source = Seeds()
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { 59_000 })
        let store = CredentialStore(sources: [source], oneTimePasswords: passwords)
        let ann = try #require(try await store.credential(named: "ann"))
        #expect(try TextTemplate("{totp}").render(ann).revealText() == "287082")
        let latches = LocalGate(store: try SealedAttemptStore(store: MemoryStore()))
        let key = LatchKey(origin: Origin(scheme: .https, host: "h"), challenge: "c", credential: "ann")
        latches.close(key, for: ann, Latch(reason: .rejected, closedAt: 0))
        let plain = try #require(try source.credential(named: "ann"))
        #expect(latches.closedLatch(key, for: plain, now: 1) != nil)
    }
}

private struct Seeds: CredentialLookup {
    func credential(named name: String) throws(CredentialError) -> Credential? {
        Credential(name: name, fields: ["totp-seed": Secret("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")])
    }
}

private final class Clock: Sendable {
    private let time: Mutex<Int64>

    init(_ time: Int64) { self.time = Mutex(time) }

    var now: Int64 {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }
}

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

    private func password(_ seed: String, at seconds: Int64) async throws -> String {
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { seconds * 1000 })
        return try await passwords.password(from: Secret(seed), of: "ann").revealText()
    }

    @Test(
        "one-time passwords match RFC 6238 appendix B",
        arguments: [
            (Int64(59), "94287082", "46119246", "90693936"), (1_111_111_109, "07081804", "68084774", "25091201"),
            (1_111_111_111, "14050471", "67062674", "99943326"), (1_234_567_890, "89005924", "91819424", "93441116"),
            (2_000_000_000, "69279037", "90698825", "38618901"), (20_000_000_000, "65353130", "77737706", "47863826"),
        ])
    func vectors(seconds: Int64, one: String, two: String, three: String) async throws {
        let address = "otpauth://totp/Bank:ann?issuer=Bank&digits=8&secret="
        #expect(try await password("\(address)\(Self.sha1)", at: seconds) == one)
        #expect(try await password("\(address)\(Self.sha256)&algorithm=SHA256", at: seconds) == two)
        #expect(try await password("\(address)\(Self.sha512)&algorithm=sha512&period=30", at: seconds) == three)
        #expect(try await password(Self.sha1, at: seconds) == one.suffix(6))
    }

    @Test("a one-time password seed may be written in groups and in either case")
    func groups() async throws {
        #expect(try await password("gezd gnbv-gy3t qojq GEZD GNBV GY3T QOJQ", at: 59) == "287082")
    }

    @Test("a one-time password has the period that its seed states")
    func period() async throws {
        let address = "otpauth://totp/x?secret=\(Self.sha1)&period="
        #expect(try await password(address + "60", at: 119) == "287082")
        let usual = try await password(Self.sha1, at: 60)
        #expect(try await password(address + "60", at: 60) != usual)
    }

    @Test(
        "an invalid one-time password seed is reported without the seed",
        arguments: [
            "", "0189", "otpauth://hotp/x?secret=GEZDGNBV", "otpauth://totp/x?digits=6", "otpauth://totp/x",
            "otpauth://totp/x?secret=GEZDGNBV&digits=9", "otpauth://totp/x?secret=GEZDGNBV&period=0",
            "otpauth://totp/x?secret=GEZDGNBV&algorithm=MD5", "GEZDGNBV=GEZDGNBV",
        ])
    func malformed(seed: String) async {
        let error = await #expect(throws: TemplateError.self) { try await password(seed, at: 59) }
        #expect(error?.reason.contains("\"ann\" ") == true && error?.reason.contains("GEZDGNBV") == false)
        #expect(error?.loginFailure(challenge: "bank").code == .noCredential)
    }

    @Test("checking a one-time password uses no step and fails as the password would")
    func check() async throws {
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { 61_000 })
        for _ in 0..<2 { try await passwords.check(Secret(Self.sha1), of: "ann") }
        _ = try await passwords.password(from: Secret(Self.sha1), of: "ann")
        await #expect(throws: TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 90_000)) {
            try await passwords.check(Secret(Self.sha1), of: "ann")
        }
        await #expect(throws: TemplateError.self) { try await passwords.check(Secret("0189"), of: "ann") }
    }

    @Test("a one-time password step is used once, also after a restart, and the error states the next step")
    func once() async throws {
        let clock = Clock(61_000)
        let store = try SealedAttemptStore(files: MemoryStore(), thread: StateThread())
        func passwords() -> TimedPasswords {
            TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(store: store), now: { clock.now })
        }
        let first = passwords()
        _ = try await first.password(from: Secret(Self.sha1), of: "ann")
        // Another seed has steps of its own.
        _ = try await first.password(from: Secret("GEZDGNBVGY3TQOJR"), of: "bob")
        clock.now = 89_999
        for passwords in [first, passwords()] {
            await #expect(throws: TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 90_000)) {
                try await passwords.password(from: Secret(Self.sha1), of: "ann")
            }
        }
        clock.now = 90_000
        _ = try await passwords().password(from: Secret(Self.sha1), of: "ann")
        // A clock that is set back a little must not open a step that was used.
        clock.now = 75_000
        await #expect(throws: TemplateError.oneTimePasswordUsed(credential: "ann", nextAt: 120_000)) {
            try await first.password(from: Secret(Self.sha1), of: "ann")
        }
    }

    @Test("a clock that was hours ahead blocks no one-time password after its correction")
    func wrongClock() async throws {
        let clock = Clock(100_000_000)
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { clock.now })
        _ = try await passwords.password(from: Secret(Self.sha1), of: "ann")
        clock.now = 10_000_000
        _ = try await passwords.password(from: Secret(Self.sha1), of: "ann")
    }

    @Test("one of many concurrent logins gets the one-time password of a step")
    func together() async throws {
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { 61_000 })
        let got = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask { (try? await passwords.password(from: Secret(Self.sha1), of: "ann")) != nil }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(got == 1)
    }

    @Test("the credential store adds one-time passwords to a credential with a seed, and its latch ignores them")
    func credentials() async throws {
        let source = Seeds()
        let passwords = TimedPasswords(digests: CryptoDigests(), attempts: LocalGate(), now: { 59_000 })
        let store = CredentialStore(sources: [source], oneTimePasswords: passwords)
        let ann = try #require(try await store.credential(named: "ann"))
        #expect(try await TextTemplate("{totp}").render(ann).revealText() == "287082")
        let latches = LocalGate(store: try SealedAttemptStore(files: MemoryStore(), thread: StateThread()))
        let key = LatchKey(origin: Origin(scheme: .https, host: "h"), challenge: "c", credential: "ann")
        await latches.close(key, for: ann, Latch(reason: .rejected, closedAt: 0))
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

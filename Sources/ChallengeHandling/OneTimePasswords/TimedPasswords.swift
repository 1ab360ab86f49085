// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// One-time passwords by the wall clock.
///
/// The attempt gate records used steps, so that no step is used again after a restart.
public struct TimedPasswords: OneTimePasswords {
    private let digests: any MessageDigests
    private let attempts: any AttemptControl
    private let now: @Sendable () -> Int64

    /// Creates passwords by the clock `now` (ms since 1970), for steps that are unused in `attempts`.
    public init(
        digests: any MessageDigests, attempts: any AttemptControl, now: @escaping @Sendable () -> Int64
    ) {
        self.digests = digests
        self.attempts = attempts
        self.now = now
    }

    /// Returns the password of the current step, and marks the step as used.
    ///
    /// A step that cannot be stored is still recorded until a restart.
    public func password(from seed: Secret, of credential: String) async throws(TemplateError) -> Secret {
        let (parameters, step) = try await step(of: seed, credential, isUsed: true)
        return parameters.password(step: step, digests: digests)
    }

    /// Throws if there is no unused password at this moment.
    public func check(_ seed: Secret, of credential: String) async throws(TemplateError) {
        _ = try await step(of: seed, credential, isUsed: false)
    }

    /// Returns the current step of `seed`, which is marked as used if `isUsed` is true.
    private func step(
        of seed: Secret, _ credential: String, isUsed: Bool
    ) async throws(TemplateError) -> (parameters: OneTimePasswordParameters, step: Int64) {
        let parameters: OneTimePasswordParameters
        do {
            parameters = try OneTimePasswordParameters(seed)
        } catch {
            throw .oneTimePasswordSeed(credential: credential, reason: error.reason)
        }
        let now = max(0, now())
        let step = now / parameters.period
        let name = Base64.encode(digests.authenticationCode(.sha256, key: parameters.key, of: Array("used".utf8)), .url)
        let usedUntil = await attempts.use(
            code: name, stepEnding: (step + 1) * parameters.period, isUsed: isUsed, now: now)
        if let usedUntil { throw .oneTimePasswordUsed(credential: credential, nextAt: usedUntil) }
        return (parameters, step)
    }
}

/// Error of a seed that cannot be used.
struct OneTimePasswordSeedError: Error {
    /// Reason, to follow "The field \"totp-seed\" …".
    var reason: String
}

/// Parameters of one-time passwords from a seed (RFC 6238): the key, and the server's choices.
struct OneTimePasswordParameters {
    /// Shared key.
    let key: Secret
    /// Hash function of the HMAC.
    let algorithm: DigestAlgorithm
    /// Number of digits.
    let digits: Int
    /// Length of a step, in ms.
    let period: Int64

    /// Parses a key in base32, or an address `otpauth://totp/…?secret=…`.
    ///
    /// Spaces and hyphens between the key's groups are ignored. A plain key means SHA-1, 6 digits and 30 s; an address
    /// may state other values.
    init(_ seed: Secret) throws(OneTimePasswordSeedError) {
        let text = seed.revealText()
        guard text.lowercased().hasPrefix("otpauth:") else {
            key = try Self.key(text)
            (algorithm, digits, period) = (.sha1, 6, 30_000)
            return
        }
        guard text.lowercased().hasPrefix("otpauth://totp/"), let question = text.firstIndex(of: "?") else {
            throw OneTimePasswordSeedError(reason: "is an otpauth address of another kind than totp")
        }
        let query = text[text.index(after: question)...]
        guard let secret = FormEncoding.value(of: "secret", in: query) else {
            throw OneTimePasswordSeedError(reason: "is an otpauth address without its secret")
        }
        key = try Self.key(secret)
        algorithm = try Self.algorithm(FormEncoding.value(of: "algorithm", in: query))
        digits = try Self.number("digits", of: query, in: 6...8) ?? 6
        period = Int64(try Self.number("period", of: query, in: 1...3600) ?? 30) * 1000
    }

    /// Returns the password of a step (RFC 4226 §5.3).
    func password(step: Int64, digests: any MessageDigests) -> Secret {
        let counter = stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: step >> Int64($0)) }
        let code = digests.authenticationCode(algorithm, key: key, of: counter)
        guard let last = code.last, Int(last & 15) + 4 <= code.count else { return Secret("") }
        let start = Int(last & 15)
        var number = code[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        var password: [UInt8] = []
        for _ in 0..<digits {
            password.insert(UInt8(ascii: "0") + UInt8(number % 10), at: 0)
            number /= 10
        }
        return Secret(taking: &password)
    }

    /// Decodes base32 (RFC 4648 §6), in either case, padded or not.
    private static func key(_ text: String) throws(OneTimePasswordSeedError) -> Secret {
        var bytes: [UInt8] = []
        var pending: UInt32 = 0
        var bits = 0
        var isPadded = false
        for character in text.utf8 where character != UInt8(ascii: " ") && character != UInt8(ascii: "-") {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit = character - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = character - UInt8(ascii: "a")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): digit = character - UInt8(ascii: "2") + 26
            case UInt8(ascii: "="):
                isPadded = true
                continue
            default: throw OneTimePasswordSeedError(reason: "contains a character that is not in the base32 alphabet")
            }
            guard !isPadded else { throw OneTimePasswordSeedError(reason: "continues after its base32 padding") }
            pending = (pending << 5 | UInt32(digit)) & 0xFFFF
            bits += 5
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> UInt32(bits)))
            }
        }
        guard !bytes.isEmpty else { throw OneTimePasswordSeedError(reason: "is empty") }
        return Secret(taking: &bytes)
    }

    private static func algorithm(_ name: String?) throws(OneTimePasswordSeedError) -> DigestAlgorithm {
        switch name?.uppercased() {
        case nil, "SHA1", "SHA-1": return .sha1
        case "SHA256", "SHA-256": return .sha256
        case "SHA512", "SHA-512": return .sha512
        default: throw OneTimePasswordSeedError(reason: "has an algorithm other than SHA1, SHA256 and SHA512")
        }
    }

    private static func number(
        _ name: String, of query: Substring, in range: ClosedRange<Int>
    ) throws(OneTimePasswordSeedError) -> Int? {
        guard let text = FormEncoding.value(of: name, in: query) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw OneTimePasswordSeedError(
                reason: "has a `\(name)` that is not a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

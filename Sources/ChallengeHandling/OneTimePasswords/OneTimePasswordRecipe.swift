// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A seed that cannot be used.
struct OneTimePasswordSeedError: Error {
    /// Why, to follow "The field \"totp-seed\" …".
    var reason: String
}

/// How one-time passwords come of a seed (RFC 6238): its key, and what differs from server to server.
struct OneTimePasswordRecipe {
    /// The shared key.
    let key: Secret
    /// The hash function of the HMAC.
    let algorithm: DigestAlgorithm
    /// The number of digits.
    let digits: Int
    /// How long a step is, in milliseconds.
    let period: Int64

    /// Reads a key in base32 (spaces and hyphens between its groups do not count), which means SHA-1, 6 digits and 30 s, or
    /// an address `otpauth://totp/…?secret=…` that says otherwise.
    init(_ seed: Secret) throws(OneTimePasswordSeedError) {
        let text = seed.revealText()
        guard text.lowercased().hasPrefix("otpauth:") else {
            key = try Self.key(text)
            (algorithm, digits, period) = (.sha1, 6, 30_000)
            return
        }
        guard text.lowercased().hasPrefix("otpauth://totp/"), let question = text.firstIndex(of: "?") else {
            throw OneTimePasswordSeedError(reason: "is an otpauth address, but none of kind totp")
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

    /// The password of the step of that number (RFC 4226 §5.3).
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

    /// Base32 (RFC 4648 §6), in either case, padded or not.
    private static func key(_ text: String) throws(OneTimePasswordSeedError) -> Secret {
        var bytes: [UInt8] = []
        var pending: UInt32 = 0
        var bits = 0
        var isPadded = false
        for sign in text.utf8 where sign != UInt8(ascii: " ") && sign != UInt8(ascii: "-") {
            let digit: UInt8
            switch sign {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit = sign - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = sign - UInt8(ascii: "a")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): digit = sign - UInt8(ascii: "2") + 26
            case UInt8(ascii: "="):
                isPadded = true
                continue
            default: throw OneTimePasswordSeedError(reason: "holds a sign that base32 does not have")
            }
            guard !isPadded else { throw OneTimePasswordSeedError(reason: "goes on behind the end of its base32") }
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
        default: throw OneTimePasswordSeedError(reason: "names an algorithm other than SHA1, SHA256 and SHA512")
        }
    }

    private static func number(
        _ name: String, of query: Substring, in range: ClosedRange<Int>
    ) throws(OneTimePasswordSeedError) -> Int? {
        guard let text = FormEncoding.value(of: name, in: query) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw OneTimePasswordSeedError(
                reason: "has `\(name)` that is no number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

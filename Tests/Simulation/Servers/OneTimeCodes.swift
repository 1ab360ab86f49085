// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Crypto

/// The one-time passwords of an account (RFC 6238), each good once: the judge of rule 6 for codes.
struct OneTimeCodes {
    /// `12345678901234567890` in base32, the secret of the RFC's own examples.
    static let seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

    /// The time for which a code is good, in ms.
    static let period: Int64 = 30_000

    private var used: Set<Int64> = []

    /// Notes that the code of a time was used by another.
    mutating func isTakenElsewhere(at now: Int64) { used.insert(now / Self.period) }

    /// Takes a code that was sent for `account`. Returns false if it is not a code of this minute.
    mutating func take(_ code: String, for account: Account) -> Bool {
        let step = account.simulation.now / Self.period
        guard let match = (step - 1...step + 1).first(where: { Self.code($0) == code }) else {
            account.simulation.violated("the code \(code) of \(account.name) is none of this minute")
            return false
        }
        let (simulation, end) = (account.simulation, (match + 1) * Self.period)
        if !simulation.weather.hasDiskFaults, !simulation.disks.contains(where: { $0.hasUsed(stepEnding: end) }) {
            simulation.violated("rule 6: a one-time password of \(account.name) is sent before its step is on disk")
        }
        let isFirst = used.insert(match).inserted
        if !isFirst, !(account.simulation.weather.hasDiskFaults && account.simulation.weather.restarts) {
            account.simulation.violated("rule 6: a one-time password of \(account.name) is used twice")
        }
        return true
    }

    /// Returns the code of a step (RFC 4226 §5.3).
    private static func code(_ step: Int64) -> String {
        let message = (0..<8).reversed().map { UInt8(truncatingIfNeeded: step >> (8 * $0)) }
        let key = SymmetricKey(data: Array("12345678901234567890".utf8))
        let digest = Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key))
        let offset = Int(digest[19] & 15)
        let number = digest[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let text = String(number % 1_000_000)
        return String(repeating: "0", count: 6 - text.utf8.count) + text
    }
}

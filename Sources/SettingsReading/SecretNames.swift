// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Names that promise a secret.
package enum SecretNames {
    private static let words: Set<String> = [
        "apikey", "authorization", "passphrase", "passwd", "password", "pin", "pwd", "secret", "seed", "token",
    ]
    private static let keys: Set<String> = ["access", "api", "auth", "private", "secret"]

    /// True if a value of that name is probably a secret: its last word says so, as in `j_password` or `X-Api-Key`.
    package static func contains(_ name: String) -> Bool {
        let parts = name.lowercased().split { "-_. ".contains($0) }.map(String.init)
        guard let last = parts.last else { return false }
        // Not every key is one: `cache-key`, `public-key`.
        if last == "key" { return parts.count == 1 || keys.contains(parts[parts.count - 2]) }
        return words.contains(last)
    }
}

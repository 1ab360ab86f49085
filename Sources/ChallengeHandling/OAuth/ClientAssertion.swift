// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A client's proof by a key of its own: a JWT with its identifier as issuer and subject, for the token endpoint, good for
/// one use (RFC 7523 §3, RFC 7515 §7.1).
struct ClientAssertion {
    /// The three parts, joined by dots.
    let compact: Secret

    /// How long it is good, in seconds: enough for clocks that differ a little, too short to be worth keeping.
    private static let life: Int64 = 300

    /// Signs one at `now` (milliseconds since 1970) with the credential's field `private-key`; the field `key-id`, where
    /// there is one, tells the server which key that is. Throws `no-credential` where the key cannot be used.
    init(
        clientID: Secret, audience: String, _ use: CredentialUse, keys: any SigningKeys, now: Int64
    ) throws(LoginFailure) {
        let pem = try use.field("private-key")
        do throws(StateError) {
            let key = try keys.load(pem: pem)
            var header: [String: JSONValue] = ["alg": .string(key.algorithm), "typ": "JWT"]
            if let id = use.credential["key-id"] { header["kid"] = .string(id.revealText()) }
            let name = JSONValue.string(clientID.revealText())
            let seconds = now / 1000
            let payload: JSONValue = [
                "iss": name, "sub": name, "aud": .string(audience), "iat": .integer(seconds),
                "exp": .integer(seconds + Self.life), "jti": .string(Self.freshName()),
            ]
            let signed =
                "\(Base64.encode(JSONValue.object(header).serialized(), .url))."
                + Base64.encode(payload.serialized(), .url)
            let signature = try key.signature(for: Array(signed.utf8))
            compact = Secret("\(signed).\(Base64.encode(signature, .url))")
        } catch {
            throw use.unusable("private-key", "cannot sign: \(error.reason).")
        }
    }

    /// 128 bits of chance: the server takes each name once (RFC 7523 §3, 7).
    private static func freshName() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The three parts of a JSON Web Signature (RFC 7515), read but not yet believed.
struct SignedToken: Sendable {
    var header: JSON
    var payload: JSON
    private var signature: [UInt8]
    private var signedText: [UInt8]

    /// Takes the parts as base64; `nil` where one is none, or where header or payload is no JSON object.
    init?(header: String, payload: String, signature: String) {
        guard let headerJSON = Base64.decode(header).flatMap(JSON.init(parsing:)), headerJSON.members != nil,
            let payloadJSON = Base64.decode(payload).flatMap(JSON.init(parsing:)), payloadJSON.members != nil,
            let signature = Base64.decode(signature)
        else { return nil }
        self.header = headerJSON
        self.payload = payloadJSON
        self.signature = signature
        // What was signed is the text as it came, in whichever alphabet.
        self.signedText = Array("\(header).\(payload)".utf8)
    }

    /// Takes the compact form `header.payload.signature`.
    init?(compact: String) {
        let parts = compact.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { return nil }
        self.init(header: parts[0], payload: parts[1], signature: parts[2])
    }

    /// The key inside, where the algorithm is RS256.
    var key: RSAPublicKey? {
        header["alg"]?.string == "RS256" ? header["jwk"].flatMap(RSAPublicKey.init) : nil
    }

    /// Whether that key signed it with RS256.
    func isSigned(by key: RSAPublicKey) -> Bool {
        header["alg"]?.string == "RS256" && key.isValid(signature: signature, of: signedText)
    }
}

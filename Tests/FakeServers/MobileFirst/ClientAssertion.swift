// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension MobileFirstState {
    /// What is wrong with the client assertion among those fields, in words; `nil` where it is right.
    ///
    /// `exp` counts milliseconds. `aud` and `iat` are not looked at, as the product evidently does not.
    func assertionProblem(_ fields: FormFields, client id: String, code: String?, now: Int64) -> String? {
        guard let client = clients[id] else { return "the client is unknown" }
        guard fields["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" else {
            return "client_assertion_type is not that of a JWT"
        }
        guard let assertion = fields["client_assertion"].flatMap(SignedToken.init(compact:)) else {
            return "client_assertion is no signed token"
        }
        guard assertion.isSigned(by: client.key) else { return "client_assertion is not signed by the client's key" }
        guard assertion.header["jwk"]?["kid"]?.string == id else {
            return "the kid of client_assertion is not the client"
        }
        guard assertion.payload["sub"]?.string == id else { return "sub is not the client" }
        guard assertion.payload["iss"]?.string == client.issuer else { return "iss is not the application" }
        guard let expiry = assertion.payload["exp"]?.integer, expiry > now else {
            return "exp is over (milliseconds in the server's clock)"
        }
        guard (assertion.payload["jti"] ?? .null) == (code.map(JSON.string) ?? .null) else {
            return "jti is not the grant code"
        }
        return nil
    }

    /// The client that an assertion speaks of, before it is believed.
    func assertedClient(_ fields: FormFields) -> String? {
        fields["client_assertion"].flatMap(SignedToken.init(compact:))?.payload["sub"]?.string
    }
}

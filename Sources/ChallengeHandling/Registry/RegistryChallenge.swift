// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// How a container registry asks for a token (distribution's *token authentication*):
/// `Bearer realm="https://auth.example.com/token",service="registry.example.com",scope="repository:a/b:pull"`.
public struct RegistryChallenge: Sendable, Equatable {
    /// The token service's address, as the registry writes it.
    public let realm: String
    /// The registry's name at the token service.
    public let service: String?
    /// What the request needs, in canonical form.
    public let scope: Scope
    /// What was wrong with the token (RFC 6750 §3.1), where there was one.
    public let error: String?

    /// The challenge among those of a 401, or `nil` where there is none.
    public init?(status: Int, fields: HTTPFields) {
        guard status == 401, let challenges = try? AuthenticationChallenge.parse(fields[values: .wwwAuthenticate]),
            let challenge = challenges.first(where: { $0.isScheme("Bearer") && $0["realm"] != nil }),
            let realm = challenge["realm"]
        else { return nil }
        self.realm = realm
        service = challenge["service"]
        scope = Scope(RegistryScope.canonical(Scope(text: challenge["scope"] ?? "").words))
        error = challenge["error"]
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Credentials that a program has at hand.
public struct FixedCredentials: CredentialProvider {
    private let credentials: [String: [String: Secret]]

    /// Credentials by their names, each with its fields.
    public init(_ credentials: [String: [String: Secret]] = [:]) { self.credentials = credentials }

    /// The credential of that name.
    public func credential(named name: String) async throws(CredentialError) -> Credential? {
        credentials[name].map { Credential(name: name, fields: $0) }
    }
}

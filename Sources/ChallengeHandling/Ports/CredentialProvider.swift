// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// A named record of secret fields: `username`, `password`, `pin`, `client-secret`, …
public struct Credential: Sendable {
    /// The name under which the configuration speaks of it.
    public let name: String
    /// Its fields by name.
    public let fields: [String: Secret]
    /// What computes its one-time passwords, if anything does. They are no field: a latch knows a credential by those, and
    /// must not open with every step.
    public var oneTimePasswords: (any OneTimePasswords)?

    /// A credential.
    public init(name: String, fields: [String: Secret], oneTimePasswords: (any OneTimePasswords)? = nil) {
        self.name = name
        self.fields = fields
        self.oneTimePasswords = oneTimePasswords
    }

    /// The field of that name, if there is one.
    public subscript(field: String) -> Secret? { fields[field] }
}

/// A source could not be read. That says nothing about the credential itself.
public struct CredentialError: Error, Sendable, Equatable {
    /// What happened, where, and what to do; without secrets. For the log: it may name files and programs.
    public var reason: String
    /// The same as a caller may read it, in whole sentences.
    public var told: String
    /// Whether somebody was asked for a field and did not give it, so that there is no credential.
    public var isAbsent: Bool

    /// An error; without `told` a caller reads the reason.
    public init(reason: String, told: String? = nil, isAbsent: Bool = false) {
        self.reason = reason
        self.told = told ?? reason
        self.isAbsent = isAbsent
    }
}

/// Where credentials come from.
public protocol CredentialProvider: Sendable {
    /// The credential of that name as it is now, or `nil` where no source knows it.
    func credential(named name: String) async throws(CredentialError) -> Credential?
    /// Sentences that say how to add a credential that no source knows. Callers read them: they name no file.
    func advice(onMissing name: String) -> String
}

extension CredentialProvider {
    /// Says no more than that it is to be added.
    public func advice(onMissing name: String) -> String { "Add it where the credentials come from." }
}

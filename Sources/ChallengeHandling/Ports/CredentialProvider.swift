// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Named record of secret fields: `username`, `password`, `pin`, `client-secret`, …
public struct Credential: Sendable {
    /// Name of the credential in the configuration.
    public let name: String
    /// Fields by name.
    public let fields: [String: Secret]
    /// Generator of one-time passwords, if there is a seed.
    ///
    /// Its passwords are not fields: a latch identifies a credential by the fields, and must not open with every step.
    public var oneTimePasswords: (any OneTimePasswords)?
    /// Source of the fields, for messages after a rejection; nil if unknown.
    public var source: AnsweringSource?

    /// Creates a credential.
    public init(name: String, fields: [String: Secret], oneTimePasswords: (any OneTimePasswords)? = nil) {
        self.name = name
        self.fields = fields
        self.oneTimePasswords = oneTimePasswords
    }

    /// The field of that name, if there is one.
    public subscript(field: String) -> Secret? { fields[field] }
}

/// Failure of a credential source, which says nothing about the credential.
public struct CredentialError: Error, Sendable, Equatable {
    /// Reason and remedy for the log, without secrets; may contain paths of files and programs.
    public var reason: String
    /// Reason and remedy for callers, in whole sentences.
    public var publicReason: String
    /// True if a person was asked for a field and gave no value, so there is no credential.
    public var isAbsent: Bool

    /// Creates an error; without `publicReason`, callers get `reason`.
    public init(reason: String, publicReason: String? = nil, isAbsent: Bool = false) {
        self.reason = reason
        self.publicReason = publicReason ?? reason
        self.isAbsent = isAbsent
    }
}

/// Source of credentials for logins.
public protocol CredentialProvider: Sendable {
    /// Returns the current credential of that name; `nil` if no source knows the name.
    func credential(named name: String) async throws(CredentialError) -> Credential?
    /// Returns sentences on how to add a missing credential. Callers read them, so they contain no paths.
    func advice(onMissing name: String) -> String
}

extension CredentialProvider {
    /// Returns a general sentence on adding a credential.
    public func advice(onMissing name: String) -> String { "Add it to a source of credentials." }
}

/// Credentials that a program provides itself.
public struct FixedCredentials: CredentialProvider {
    private let credentials: [String: [String: Secret]]

    /// Creates credentials by name, each with its fields.
    public init(_ credentials: [String: [String: Secret]] = [:]) { self.credentials = credentials }

    /// Returns the credential of that name.
    public func credential(named name: String) async throws(CredentialError) -> Credential? {
        credentials[name].map { Credential(name: name, fields: $0) }
    }
}

/// Generator of one-time passwords from the time (RFC 6238), with a record of used steps.
public protocol OneTimePasswords: Sendable {
    /// Returns the password of the current step of `seed`, and marks the step as used.
    ///
    /// `credential` is the name for errors. Throws if the seed is invalid, and `oneTimePasswordUsed` if the current step was used
    /// before: servers accept each password once (RFC 6238 §5.2).
    func password(from seed: Secret, of credential: String) async throws(TemplateError) -> Secret
    /// Throws as `password` would at this moment, without using a step.
    ///
    /// For a login that first sends another request.
    func check(_ seed: Secret, of credential: String) async throws(TemplateError)
}

/// Source that gave the value of a credential, and the way to change the value there.
public struct AnsweringSource: Sendable, Equatable {
    /// Name of the source for callers, without paths: "the keyring".
    public var kind: String
    /// Name of the source for operators, with its path: "the keyring /var/lib/countersign/keyring".
    public var name: String
    /// Sentence on changing the value in the source, without paths.
    public var change: String

    /// Creates a source; without `name`, operators get `kind`.
    public init(kind: String, name: String? = nil, change: String) {
        self.kind = kind
        self.name = name ?? kind
        self.change = change
    }
}

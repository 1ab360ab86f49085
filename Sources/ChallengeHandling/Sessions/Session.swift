// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// A field that a session adds to each request.
public struct InjectedField: Sendable, Equatable {
    /// Its name, for example `Authorization`.
    public let name: HTTPField.Name
    /// Its whole value.
    public let value: Secret

    /// A field.
    public init(name: HTTPField.Name, value: Secret) {
        self.name = name
        self.value = value
    }
}

/// What a conversation won, until it expires.
public struct Session: Sendable, Equatable {
    /// What is injected into each request that uses it.
    public var fields: [InjectedField]
    /// When it ends, in milliseconds since 1970; `nil` where the server did not say.
    public var expiresAt: Int64?

    /// A session.
    public init(fields: [InjectedField], expiresAt: Int64? = nil) {
        self.fields = fields
        self.expiresAt = expiresAt
    }
}

/// What a session is held under.
public struct SessionKey: Sendable, Hashable {
    /// The upstream's origin.
    public var origin: Origin
    /// The challenge's name in the configuration; for a MobileFirst upstream, the upstream's.
    public var challenge: String
    /// The credential's name; empty where several credentials take part.
    public var credential: String
    /// The scope asked for, its words sorted and joined by one space; empty where there is none.
    public var scope: String

    /// A key.
    public init(origin: Origin, challenge: String, credential: String, scope: String = "") {
        self.origin = origin
        self.challenge = challenge
        self.credential = credential
        self.scope = scope
    }
}

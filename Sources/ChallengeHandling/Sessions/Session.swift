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

    /// A field with a copy of `value`.
    package init(name: HTTPField.Name, value: Span<UInt8>) {
        var copy = SecretBuilder(capacity: value.count)
        copy.append(value)
        self.init(name: name, value: copy.finish())
    }
}

/// What a conversation won, until it expires.
public struct Session: Sendable {
    /// What is injected into each request that uses it.
    public var fields: [InjectedField]
    /// When it ends, in milliseconds since 1970; `nil` where the server did not say.
    public var expiresAt: Int64?
    /// Whether the server has accepted it. One that it has not is tried by one exchange at a time, the first of those that
    /// wait: anything but the same challenge again proves it, while 429 and 5xx say nothing; the challenge again closes the
    /// latch of `use`.
    public var isProven: Bool
    /// Whose latch closes where the session is refused before it was proven.
    public var use: CredentialUse?
    /// What makes more fields for each request.
    public var signer: (any RequestSigner)?
    /// The cookies that the login won.
    public var cookies: SessionCookies?
    /// What connections are authenticated with.
    public var connection: ConnectionCredential?
    /// The path at which an empty session's login looked; `nil` if it holds for every path.
    package var lookedAt: String?
    /// True if it can be won again ahead of its end, without a challenge.
    public var isRenewedAhead = true

    /// A session that the server has accepted, or will have no opinion about.
    public init(fields: [InjectedField] = [], expiresAt: Int64? = nil, cookies: SessionCookies? = nil) {
        self.fields = fields
        self.expiresAt = expiresAt
        self.cookies = cookies
        isProven = true
    }

    /// A session that the first answer to a request with it proves or refuses, and with it the credential of `use`.
    public init(unproven use: CredentialUse, fields: [InjectedField] = [], signer: (any RequestSigner)? = nil) {
        self.fields = fields
        self.use = use
        self.signer = signer
        isProven = false
    }

    /// The empty session of a login that found nothing asked for at `target`. It ends after a while, so that later requests
    /// look again: soon, if the server was in trouble (`isBrief`).
    static func nothingAsked(at target: WebURL, now: Int64, isBrief: Bool = false) -> Session {
        var session = Session(expiresAt: now + (isBrief ? 5_000 : 60_000))
        session.lookedAt = target.path
        session.isRenewedAhead = false
        return session
    }

    /// Whether it adds nothing to a request: where the login looked, nothing was asked for.
    public var isEmpty: Bool { fields.isEmpty && signer == nil && cookies == nil && connection == nil }
}

extension Session: Equatable {
    /// Whether both say the same in the same way: signers and cookies are the same ones.
    public static func == (left: Session, right: Session) -> Bool {
        left.fields == right.fields && left.expiresAt == right.expiresAt && left.isProven == right.isProven
            && left.signer === right.signer && left.cookies === right.cookies && left.connection == right.connection
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// Field that a session adds to each request.
public struct InjectedField: Sendable, Equatable {
    /// Name, for example `Authorization`.
    public let name: HTTPField.Name
    /// Complete value.
    public let value: Secret

    /// Creates a field.
    public init(name: HTTPField.Name, value: Secret) {
        self.name = name
        self.value = value
    }

    /// Creates a field with a copy of `value`.
    package init(name: HTTPField.Name, value: Span<UInt8>) {
        var copy = SecretBuilder(capacity: value.count)
        copy.append(value)
        self.init(name: name, value: copy.finish())
    }
}

/// Result of a login, valid until it expires.
public struct Session: Sendable {
    /// Fields added to each request.
    public var fields: [InjectedField]
    /// Expiry time in ms since 1970; nil if the server stated none.
    public var expiresAt: Int64?
    /// True if the server has accepted the session.
    ///
    /// An unverified session is used by one exchange at a time, the first that waits. Any response but the same
    /// challenge verifies it, while 429 and 5xx decide nothing; the same challenge closes the latch of `use`.
    public var isVerified: Bool
    /// Credential use whose latch closes if the session is refused before it is verified.
    public var use: CredentialUse?
    /// Submission that seems to have worked: the first answered request on the session shows it. `nil` if nothing is open.
    package var submission: UnverifiedSubmission?
    /// Signer of further fields for each request.
    public var signer: (any RequestSigner)?
    /// Cookies that the login set.
    public var cookies: SessionCookies?
    /// Credential for connections.
    public var connection: ConnectionCredential?
    /// Values for the target and the body of each request.
    package var injections: RequestInjections?
    /// Path that the login of an empty session probed; nil if the session is for every path.
    package var probedPath: String?
    /// True if another node has established the session, so that it may have ended since.
    package var isTakenOver = false
    /// True if the session can be renewed before its end, without a challenge.
    public var isRenewedAhead = true

    /// Creates a session that the server has accepted, or does not check.
    public init(fields: [InjectedField] = [], expiresAt: Int64? = nil, cookies: SessionCookies? = nil) {
        self.fields = fields
        self.expiresAt = expiresAt
        self.cookies = cookies
        isVerified = true
    }

    /// Creates an unverified session, whose first response verifies or refuses the credential of `use`.
    public init(unverified use: CredentialUse, fields: [InjectedField] = [], signer: (any RequestSigner)? = nil) {
        self.fields = fields
        self.use = use
        self.signer = signer
        isVerified = false
    }

    /// Returns the empty session of a login that found no challenge at `target`.
    ///
    /// It ends after a minute, so that later requests probe again; after 5 s if the server had a problem (`isBrief`).
    static func nothingAsked(at target: WebURL, now: Int64, isBrief: Bool = false) -> Session {
        var session = Session(expiresAt: now + (isBrief ? 5_000 : 60_000))
        session.probedPath = target.path
        session.isRenewedAhead = false
        return session
    }

    /// True if it adds nothing to a request, because its login found no challenge.
    public var isEmpty: Bool {
        fields.isEmpty && signer == nil && cookies == nil && connection == nil && injections == nil
    }
}

extension Session: Equatable {
    /// Compares fields, expiry and state, and the identity of signers and cookies.
    public static func == (left: Session, right: Session) -> Bool {
        left.fields == right.fields && left.expiresAt == right.expiresAt && left.isVerified == right.isVerified
            && left.signer === right.signer && left.cookies === right.cookies && left.connection == right.connection
            && left.injections === right.injections
    }
}

/// Submission of a value whose acceptance no address has shown yet.
package struct UnverifiedSubmission: Sendable {
    /// The submitted value.
    package let use: CredentialUse
    /// The page's form that was submitted; `nil` without one.
    package let form: AcceptedForm?
    /// Path of the caller's address that showed the login page without the session; `nil` for another address.
    package let askedAt: String?

    /// Creates a submission.
    package init(use: CredentialUse, form: AcceptedForm? = nil, askedAt: String? = nil) {
        self.use = use
        self.form = form
        self.askedAt = askedAt
    }
}

/// Key of a session.
public struct SessionKey: Sendable, Hashable {
    /// Origin of the upstream.
    public var origin: Origin
    /// Name of the challenge in the configuration; for a MobileFirst upstream, the upstream's name.
    public var challenge: String
    /// Name of the credential; empty if several credentials are involved.
    public var credential: String
    /// Requested scope, its words sorted and joined by one space; may be empty.
    public var scope: String

    /// Creates a key.
    public init(origin: Origin, challenge: String, credential: String, scope: String = "") {
        self.origin = origin
        self.challenge = challenge
        self.credential = credential
        self.scope = scope
    }
}

/// Credential of a connection to the upstream, for schemes that authenticate connections (NTLM, MS-NTHT).
///
/// libcurl exchanges the messages. A connection with one credential carries no request of another.
public struct ConnectionCredential: Sendable, Equatable {
    /// User name: `user`, or `DOMAIN\user`.
    public var username: Secret
    /// Password.
    public var password: Secret

    /// Creates a credential.
    public init(username: Secret, password: Secret) {
        self.username = username
        self.password = password
    }
}

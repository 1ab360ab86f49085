// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A session as it is handed over to the next process: what it injects, and what it was won with. No credential is in it but what
/// the fields themselves say; a signer is made anew from the credential.
package struct SessionImage: Sendable, Equatable {
    /// What it is held under.
    package var key: SessionKey
    /// A digest of what the configuration says of its challenge: where that has changed, it is won again.
    package var configuration: [UInt8]
    /// The versions of the credentials that it was won with, by name (see `LatchBook.version`).
    package var versions: [String: [UInt8]]
    /// When it was won, in milliseconds since 1970.
    package var wonAt: Int64
    /// When it ends, in milliseconds since 1970, where that is known.
    package var expiresAt: Int64?
    /// What goes along with each request.
    package var fields: [InjectedField]
    /// Its cookies.
    var cookies: CookieJar?
    /// The image that its signer is made of anew, with the credential.
    package var signer: SignerImage?
    /// Whose latch closes where it is refused.
    package var latch: LatchImage?

    /// A latch and how it opens.
    package struct LatchImage: Sendable, Equatable {
        /// What it is closed for.
        package var key: LatchKey
        /// After how many milliseconds it opens by itself; `nil`: never.
        package var retryAfter: Int64?
    }

    /// The image of a session; `nil` where it cannot be handed over: connections and tickets stay with their process, and are won
    /// again for little. `configuration` and `versions`: see there.
    package init?(
        _ key: SessionKey, _ held: HeldSession, configuration: [UInt8], versions: [String: [UInt8]]
    ) {
        self.init(key, held.session, wonAt: held.wonAt, configuration: configuration, versions: versions)
    }

    /// The same of a session that no table holds yet.
    package init?(
        _ key: SessionKey, _ session: Session, wonAt: Int64, configuration: [UInt8], versions: [String: [UInt8]]
    ) {
        guard session.connection == nil else { return nil }
        if let signer = session.signer {
            guard let image = signer.image else { return nil }
            self.signer = image
        }
        self.key = key
        self.configuration = configuration
        self.versions = versions
        self.wonAt = wonAt
        expiresAt = session.expiresAt
        fields = session.fields
        cookies = session.cookies?.snapshot
        latch = session.use.map { use in
            LatchImage(key: use.key, retryAfter: use.retryRejectedAfter?.milliseconds)
        }
    }

    init(
        key: SessionKey, configuration: [UInt8], versions: [String: [UInt8]], wonAt: Int64, expiresAt: Int64?,
        fields: [InjectedField], cookies: CookieJar?, signer: SignerImage?, latch: LatchImage?
    ) {
        self.key = key
        self.configuration = configuration
        self.versions = versions
        self.wonAt = wonAt
        self.expiresAt = expiresAt
        self.fields = fields
        self.cookies = cookies
        self.signer = signer
        self.latch = latch
    }

    /// The credential that the session cannot be used without.
    package var credentialNeeded: String? { latch?.key.credential }

    /// The session; `credential` is the one of `credentialNeeded`, of the version that it was won with. `nil` where it cannot be
    /// made without, or not of it. `codec` is that of the authenticator whose session it is.
    package func session(credential: Credential?, codec: SignerCodec) -> Session? {
        var session = Session(fields: fields, expiresAt: expiresAt, cookies: cookies.map(SessionCookies.init))
        if let latch {
            guard let credential, credential.name == latch.key.credential else { return nil }
            session.use = CredentialUse(
                key: latch.key, credential: credential,
                retryRejectedAfter: latch.retryAfter.map { .milliseconds($0) })
        }
        if let signer {
            guard let credential, let signer = codec.signer(of: signer, for: credential) else { return nil }
            session.signer = signer
        }
        return session
    }
}

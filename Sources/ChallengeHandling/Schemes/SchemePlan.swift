// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

/// What all logins of one challenge by HTTP authentication have in common.
public struct SchemePlan: Sendable {
    /// The challenge's name in the configuration.
    public var name: String
    /// The schemes, in the order in which they are tried.
    public var schemes: [any AuthenticationScheme]
    /// The realm that is meant; `nil`: any.
    public var realm: String?
    /// The credential's latch; `nil` where no credential is named.
    public var key: LatchKey?
    /// After what time a latch that a rejection closed opens by itself; `nil`: never.
    public var retryRejectedAfter: Duration?
    /// What is asked for where no response has led to the login.
    public var address: WebURL
    /// True if `address` asks for the login for certain (`prove-at`), so that no other is looked at.
    public var isProof: Bool
    /// Which realm is where, if logins for several realms stand at one place.
    public var spaces: RealmSpaces?

    /// A plan.
    public init(
        name: String, schemes: [any AuthenticationScheme], realm: String? = nil, key: LatchKey?,
        retryRejectedAfter: Duration? = nil, address: WebURL, isProof: Bool = false, spaces: RealmSpaces? = nil
    ) {
        self.name = name
        self.schemes = schemes
        self.realm = realm
        self.key = key
        self.retryRejectedAfter = retryRejectedAfter
        self.address = address
        self.isProof = isProof
        self.spaces = spaces
    }

    /// Whether an answer can go ahead of any challenge. With a realm it cannot: who would say that it is that one?
    var needsNoChallenge: Bool { schemes.count == 1 && schemes[0].needsNoChallenge && realm == nil }

    /// Makes the signers of its sessions anew, by the scheme whose they were.
    public var codec: SignerCodec {
        SignerCodec { [schemes, name] image, credential in
            schemes.lazy.compactMap { $0.signer(of: image, for: credential, challenge: name) }.first
        }
    }

    /// What the first of the schemes finds in the fields of a 401; `nil` where none is offered.
    package func offer(in fields: HTTPFields) -> Challenge? {
        let challenges = Self.challenges(in: fields)
        for scheme in schemes {
            if let offer = scheme.offer(among: challenges, realm: realm) { return offer }
        }
        return nil
    }

    /// The challenges in the fields of a 401; none where they do not follow the grammar.
    static func challenges(in fields: HTTPFields) -> [AuthenticationChallenge] {
        (try? AuthenticationChallenge.parse(fields[values: .wwwAuthenticate])) ?? []
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Settings of `sign: { message: … }`: HTTP message signatures (RFC 9421).
package struct MessageSignature: SignatureKind {
    /// Requests that are signed.
    package enum Time: String, Sendable, CaseIterable {
        /// Every request.
        case always
        /// Requests after a response that asks for it.
        case challenged
    }

    /// Contents of the signature.
    package var plan: MessagePlan
    /// Algorithm.
    package var algorithm: MessageAlgorithm
    /// Value of `keyid`; nil: the thumbprint of the key pair, or no `keyid`.
    package var keyID: String?
    /// Value of `Signature-Agent`; nil: no such field.
    package var agent: String?
    /// Requests that are signed.
    package var time = Time.always

    /// Creates settings of these components.
    package init(_ components: [SignedComponent], _ algorithm: MessageAlgorithm, label: String = "sig1") {
        plan = MessagePlan(components, label: label)
        self.algorithm = algorithm
    }

    /// Value of `tag`; nil: no parameter.
    var tag: String? { plan.tag }
    /// True if each signature has a random nonce.
    var hasNonce: Bool { plan.nonce == .random }
    /// Time from `created` to `expires`, in seconds; nil: no parameter.
    var lifetime: Int64? { plan.lifetime }

    /// Field of the key.
    package var neededFields: Set<String> { [algorithm.pair == nil ? "secret" : "private-key"] }

    /// Returns whether both write a signature of one label, or the one field that names the agent.
    package func conflicts(with other: MessageSignature) -> Bool {
        plan.label == other.plan.label || agent != nil && other.agent != nil
    }

    /// Adds everything that verifiers see.
    package func add(to terms: inout LoginTerms) {
        terms.add("sign.message", plan.components.map { StructuredFieldWriter.text(of: $0.item) })
        terms.add("sign.algorithm", algorithm.rawValue)
        terms.add("sign.label", plan.label)
        terms.add("sign.tag", tag)
        terms.add("sign.key-id", keyID)
        terms.add("sign.expires", lifetime.map { "\($0)" })
        terms.add("sign.agent", agent)
        terms.add("sign.when", time.rawValue)
    }

    /// Returns an authenticator that signs every request, or those that a server asks for.
    package func authenticator(
        of challenge: ChallengeSettings, _ key: SessionKey, at site: LoginSite
    ) -> Authenticator {
        let (settings, digests, keys) = (self, site.material.digests, site.material.messageKeys)
        guard time == .challenged else {
            let login = SigningLogin(key: key) { credential throws(LoginFailure) in
                MessageSigner(
                    settings.plan, agent: settings.agent,
                    key: try MessageSigningKey(
                        of: settings, credential, challenge: key.challenge, digests: digests, keys: keys),
                    challenge: key.challenge, digests: digests)
            }
            var authenticator = Authenticator(
                name: challenge.name, trigger: .ahead, isAhead: true, key: key, credentials: [key.credential],
                isShareable: false, makeLogin: { _ in login })
            authenticator.signsBodies = plan.coversBody
            return authenticator
        }
        let isKeyNamed = keyID != nil || algorithm.pair == nil
        let requests = RequestedSignatures(keyID: isKeyNamed ? .known(keyID) : .unknown)
        let detector = MessageDetector(settings: self, requests: requests)
        let address = site.upstream.url.withoutQuery
        var authenticator = Authenticator(
            name: challenge.name, trigger: .detected(detector), isAhead: false, key: key, credentials: [key.credential],
            isShareable: false,
            makeLogin: {
                MessageLogin(
                    settings: settings, key: key, detector: detector, occasion: $0, address: address, digests: digests,
                    keys: keys)
            })
        authenticator.signsBodies = true
        return authenticator
    }
}

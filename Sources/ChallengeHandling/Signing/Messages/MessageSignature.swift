// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import SettingsReading

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

extension MessageSignature {
    private enum Keys {
        static let components = Key(
            required: "message",
            .filledList(of: .component, else: "is empty: name at least one component, such as @method"),
            "Components of an HTTP message signature, in order (RFC 9421).")
        static let algorithm = Key(
            required: "algorithm", ValueForm<MessageAlgorithm>.choice, "Algorithm of the message signature.")
        static let tag = Key("tag", .signatureText, "Application that the signature is for, such as `web-bot-auth`.")
        static let label = Key<String>("label", .signatureLabel, default: "sig1", "Label of the signature.")
        static let keyID = Key(
            "key-id", .signatureText, without: "thumbprint of the key pair (RFC 7638); none with `hmac`",
            "Identifier of the key that the signature names.")
        static let expires = Key(
            "expires", .duration(atLeast: .seconds(1)), without: "no end",
            "Time after which verifiers refuse the signature.")
        static let nonce = Key<Bool>("nonce", .flag, default: false, "Whether each signature has a random nonce.")
        static let agent = Key(
            "agent", .signatureAgent, "Address in the field `Signature-Agent`, which the signature then covers.")
        static let time = Key<Time>(
            "when", .choice, default: .always,
            "Which requests are signed: all, or those whose response asks with `Accept-Signature`.")
    }

    /// The components, and the parameters of the signature.
    package static let keys: [any SchemaKey] = [
        Keys.components, Keys.algorithm, Keys.tag, Keys.label, Keys.keyID, Keys.expires, Keys.nonce, Keys.agent,
        Keys.time,
    ]

    /// Reads the settings.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> MessageSignature? {
        let components = fields[Keys.components]
        let (algorithm, agent) = (fields[Keys.algorithm], fields[Keys.agent])
        var settings = MessageSignature(components ?? [], algorithm ?? .ed25519, label: fields[Keys.label])
        settings.plan.tag = fields[Keys.tag]
        settings.keyID = fields[Keys.keyID]
        settings.plan.lifetime = fields[Keys.expires].map(\.components.seconds)
        if fields[Keys.nonce] { settings.plan.nonce = .random }
        settings.agent = agent
        settings.time = fields[Keys.time]
        guard algorithm != nil, let written = fields.written(Keys.components), let components,
            components.count == written.listOrOne().count
        else { return nil }
        check(components, written)
        let isAgentCovered = settings.plan.covers("signature-agent")
        if agent != nil, !isAgentCovered { settings.plan.components.append(SignedComponent(plain: "signature-agent")) }
        return settings
    }

    private static func check(_ components: [SignedComponent], _ written: Value) {
        var seen: Set<SignedComponent> = []
        for (component, value) in zip(components, written.listOrOne()) where !seen.insert(component).inserted {
            // §2.5, step 2: a signature base has each identifier once.
            value.report("names a component twice")
        }
        let binds = components.contains { ["@authority", "@target-uri", "host"].contains($0.name) }
        if !binds {
            written.report(
                "has neither @authority nor @target-uri: any other server that trusts the key accepts the same signature",
                severity: .warning)
        }
    }
}

extension ValueForm where Content == SignedComponent {
    /// A component of a request.
    fileprivate static let component = ValueForm("component", plural: "components") { value in
        guard let text = value.word() else { return nil }
        do throws(SignedComponent.Fault) {
            let component = try SignedComponent(text)
            guard !component.isLate else {
                value.report("is written after the signature is made; sign content-digest for the body")
                return nil
            }
            return component
        } catch {
            value.report(error.reason)
            return nil
        }
    }
}

extension ValueForm where Content == String {
    /// A text in a string of a structured field.
    fileprivate static let signatureText = ValueForm("text") { value in
        guard let text = value.word() else { return nil }
        guard StructuredFieldWriter.isString(text) else {
            value.report("has a character that is not ASCII")
            return nil
        }
        return text
    }

    /// A key of a dictionary.
    fileprivate static let signatureLabel = ValueForm("label", write: { .scalar($0) }) { value in
        guard let text = value.word() else { return nil }
        guard StructuredFieldWriter.isKey(text) else {
            value.report("is not a label: a lower-case letter, then lower-case letters, digits, and any of - _ . *")
            return nil
        }
        return text
    }

    /// An http or https address, as it is written.
    fileprivate static let signatureAgent = ValueForm("http or https address") { value in
        value.webURL() == nil ? nil : value.word()
    }
}

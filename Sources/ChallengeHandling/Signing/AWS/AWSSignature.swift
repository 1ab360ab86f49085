// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import SettingsReading

/// Settings of `sign: { aws: … }`: Signature Version 4.
package struct AWSSignature: SignatureKind {
    /// Parts of a signature that a body is.
    package enum Payload: String, Sendable, CaseIterable {
        /// Digest of the body, if the body is kept.
        case auto
        /// Never signed, if the service allows this.
        case unsigned
    }

    /// Service and region.
    package var service: AWSService
    /// Treatment of bodies.
    package var payload = Payload.auto
    /// Role whose temporary key signs; nil: the key of the credential.
    package var role: AWSRole?
    /// Address that issues tokens for a container registry; nil: requests are signed.
    package var registry: WebURL?

    /// Creates settings of a service.
    package init(_ service: AWSService) { self.service = service }

    /// Fields of the access key, or the token that is exchanged for one.
    package var neededFields: Set<String> {
        role?.proof == .webIdentity ? ["token"] : ["access-key-id", "secret-access-key"]
    }

    /// Addresses of the temporary key and of the registry's tokens.
    package var loginAddresses: [(url: WebURL, key: String)] {
        (role.map { [($0.url, "sign.aws.assume-role.url")] } ?? [])
            + (registry.map { [($0, "sign.aws.registry")] } ?? [])
    }

    /// True: a request has one `Authorization`.
    package func conflicts(with other: AWSSignature) -> Bool { true }

    /// Adds the service, the role and the registry.
    package func add(to terms: inout LoginTerms) {
        terms.add("sign.aws.region", service.region)
        terms.add("sign.aws.service", service.name)
        terms.add("sign.aws.assume-role.role", role?.name)
        terms.add("sign.aws.assume-role.url", role.map { "\($0.url)" })
        terms.add("sign.aws.registry", registry.map { "\($0)" })
    }

    /// Returns an authenticator that signs requests, or that adds a registry's token.
    package func authenticator(
        of challenge: ChallengeSettings, _ key: SessionKey, at site: LoginSite
    ) -> Authenticator {
        let digests = site.material.digests
        let clock = AWSClock()
        let (settings, retry) = (self, challenge.retryRejected)
        let detector: any ChallengeDetector = registry == nil ? AWSDetector() : AWSRegistryDetector()
        var authenticator = Authenticator(
            name: challenge.name, trigger: .detected(detector), isAhead: true, isKept: challenge.login == .atStart,
            key: key, credentials: [key.credential], isShareable: false,
            makeLogin: {
                AWSLogin(
                    settings, key, retryRejectedAfter: retry, digests: digests, clock: clock, challenge: $0.challenge)
            }
        ).sending(to: Set(loginAddresses.map(\.url.origin)))
        authenticator.signsBodies = registry == nil
        authenticator.decodesChunks = registry == nil && service.takesUnsignedBodies
        return authenticator
    }
}

extension AWSSignature {
    private enum Keys {
        static let aws = Key(required: "aws", .fields(of: section), "Signature Version 4 of AWS.")
        static let region = Key(required: "region", .scopePart, "Region in the signature.")
        static let service = Key(required: "service", .scopePart, "Service in the signature, such as `s3`.")
        static let payload = Key<Payload>(
            "payload", .choice, default: .auto,
            "Whether bodies are signed: as far as they are kept, or never (`s3` only).")
        static let role = Key(
            "assume-role", .fields(of: AWSRole.section), without: "the credential's own key",
            "Role whose temporary key signs the requests.")
        static let registry = Key(
            "registry", .addressWithoutQuery, without: "none: requests are signed",
            "Address of ECR's API, which issues tokens for the registry; requests carry the token in place of a signature."
        )
    }

    /// Table of `challenges.sign.aws`.
    static let section = KeySection(
        "challenges.sign.aws", [Keys.region, Keys.service, Keys.payload, Keys.role, Keys.registry])

    /// The settings of AWS.
    package static let keys: [any SchemaKey] = [Keys.aws]

    /// Reads the settings.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> AWSSignature? {
        guard let aws = fields[Keys.aws] else { return nil }
        let (region, name) = (aws[Keys.region], aws[Keys.service])
        let role = aws[Keys.role].flatMap(AWSRole.read)
        let isRoleBroken = aws.written(Keys.role) != nil && role == nil
        guard let region, let name, !isRoleBroken else { return nil }
        var settings = AWSSignature(AWSService(name, region: region))
        settings.payload = aws[Keys.payload]
        settings.role = role
        settings.registry = aws[Keys.registry]
        if settings.payload == .unsigned, !settings.service.takesUnsignedBodies {
            aws.written(Keys.payload)?.report("belongs to the service s3: every other one requires signed bodies")
        }
        if settings.registry != nil, name != "ecr", name != "ecr-public" {
            aws.written(Keys.registry)?.report("belongs to the services ecr and ecr-public")
        }
        return settings
    }
}

extension ValueForm where Content == String {
    /// Word of letters, digits and hyphens.
    fileprivate static let scopePart = ValueForm("word") { value in
        guard let text = value.word() else { return nil }
        guard AWSService.isScopePart(text) else {
            value.report("is not a name of letters, digits and hyphens")
            return nil
        }
        return text
    }
}

/// The service of a signature, and the region that it runs in.
package struct AWSService: Sendable, Hashable {
    /// Name in signatures: `s3`, `sts`, `execute-api`.
    package var name: String
    /// Region in signatures: `eu-west-1`.
    package var region: String

    /// Creates a service.
    package init(_ name: String, region: String) {
        self.name = name
        self.region = region
    }

    /// Services that store objects, whose keys are paths: they decode a path once, and never normalise it.
    private static let stores: Set<String> = ["s3", "s3-object-lambda", "s3-outposts", "s3express"]

    /// True if the service stores objects.
    ///
    /// Its signature covers the path as it is sent; every other service normalises the path and encodes it twice.
    var isStore: Bool { Self.stores.contains(name) }

    /// True if the service demands the body's digest as a field.
    var wantsDigestField: Bool { isStore || name == "aoss" || name == "vpc-lattice-svcs" }

    /// True if the service takes a body without a digest.
    var takesUnsignedBodies: Bool { isStore || name == "vpc-lattice-svcs" }

    /// Returns whether `text` can be a part of the scope of a signature.
    static func isScopePart(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "-") }
    }
}

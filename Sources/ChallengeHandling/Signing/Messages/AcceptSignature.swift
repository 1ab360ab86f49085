// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes

/// Signatures that a server asks for with `Accept-Signature` (RFC 9421 §5.1).
struct AcceptSignature {
    /// Maximum number of bytes of the field, and of components of one signature.
    static let (longest, mostComponents) = (8192, 64)

    /// Signature that can be made, with the nonce that the server wants in it.
    struct Answer: Equatable {
        /// Contents of the signature.
        var plan: MessagePlan
        /// Value of `nonce`, for one request.
        var nonce: String?
    }

    /// Knowledge of the value of `keyid`, which may depend on the credential.
    enum KeyIdentifier: Sendable, Equatable {
        /// The value; nil: signatures have no `keyid`.
        case known(String?)
        /// No credential was looked up yet.
        case unknown
    }

    private static let name = HTTPField.Name(literal: "Accept-Signature")

    private let members: [(key: String, member: StructuredMember)]

    /// Reads the field; nil if missing, too long or malformed.
    init?(_ fields: HTTPFields) {
        let text = fields[values: Self.name].joined(separator: ", ")
        guard (1...Self.longest).contains(text.utf8.count),
            let members = StructuredFieldParser.dictionary(Array(text.utf8))
        else { return nil }
        self.members = members
    }

    /// Returns the first signature that `settings` can make; nil if there is none.
    func answer(by settings: MessageSignature, keyID: KeyIdentifier) -> Answer? {
        for (label, member) in members {
            guard case .innerList(let items, let parameters) = member, items.count <= Self.mostComponents,
                let components = Self.components(items),
                let answer = Self.answer(label, components, parameters, settings, keyID)
            else { continue }
            return answer
        }
        return nil
    }

    /// Returns the components; nil if one occurs twice or is not one of requests.
    private static func components(_ items: [StructuredItem]) -> [SignedComponent]? {
        var components: [SignedComponent] = []
        for item in items {
            guard let component = try? SignedComponent(item), !component.isLate, !components.contains(component) else {
                return nil
            }
            components.append(component)
        }
        return components
    }

    private static func answer(
        _ label: String, _ components: [SignedComponent], _ parameters: StructuredParameters,
        _ settings: MessageSignature, _ keyID: KeyIdentifier
    ) -> Answer? {
        // A tag names an application (§2.3): no server gets a signature for the purpose of another one.
        guard parameters["tag"] == settings.tag.map(StructuredValue.string) else { return nil }
        var plan = MessagePlan(settings.extended(components), label: label)
        plan.tag = settings.tag
        plan.nonce = settings.hasNonce ? .random : .none
        plan.lifetime = settings.lifetime
        plan.requested = components
        var nonce: String?
        for (name, value) in parameters.all {
            switch (name, value) {
            case ("created", .boolean(true)), ("tag", _): break
            case ("expires", .boolean(true)): plan.lifetime = settings.lifetime ?? MessageSignature.requestedLifetime
            case ("nonce", .string(let text)):
                nonce = text
                plan.nonce = .received
            case ("alg", .string(let text)):
                guard text == settings.algorithm.registeredName else { return nil }
                plan.namesAlgorithm = true
            case ("keyid", .string(let text)):
                if case .known(let own) = keyID, own != text { return nil }
            default: return nil
            }
        }
        return Answer(plan: plan, nonce: nonce)
    }
}

extension MessageSignature {
    /// Lifetime of a signature whose server asks for `expires`, if none is configured, in seconds.
    static let requestedLifetime: Int64 = 300

    /// Returns the components that a server asks for, followed by those of the configuration.
    ///
    /// Without the authority, the signature would be good for any other server that trusts the key.
    func extended(_ components: [SignedComponent]) -> [SignedComponent] {
        var components = components
        for component in plan.components where !components.contains(component) { components.append(component) }
        let binds = components.contains { ["@authority", "@target-uri", "host"].contains($0.name) }
        if !binds { components.append(SignedComponent(plain: "@authority")) }
        return components
    }
}

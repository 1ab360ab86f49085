// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Contents of one kind of signature: the components, and the signature's parameters (RFC 9421 §2.3).
package struct MessagePlan: Sendable, Equatable {
    /// Source of the parameter `nonce`.
    package enum Nonce: Sendable, Equatable {
        /// No parameter.
        case none
        /// Random value, a new one for each request.
        case random
        /// Value that the server has sent, each for one request.
        case received
    }

    /// Components, in the order of the signature.
    package var components: [SignedComponent]
    /// Label of the signature.
    package var label: String
    /// Value of `tag`; nil: no parameter.
    package var tag: String?
    /// Source of `nonce`.
    package var nonce = Nonce.none
    /// Time from `created` to `expires`, in seconds; nil: no parameter `expires`.
    package var lifetime: Int64?
    /// True if the parameter `alg` names the algorithm.
    package var namesAlgorithm = false
    /// Components that a server has asked for; nil if the configuration alone determines them.
    ///
    /// A request that lacks one of them is sent without a signature.
    package var requested: [SignedComponent]?

    /// Creates a plan without optional parameters.
    package init(_ components: [SignedComponent], label: String) {
        self.components = components
        self.label = label
    }

    /// True if the signature depends on the body.
    package var coversBody: Bool { covers("content-digest") }

    /// Returns whether a request without a body is signed without a component, if it does not have that component.
    func isOptional(_ component: SignedComponent) -> Bool {
        component.isAboutBody && requested?.contains(component) != true
    }

    /// Returns whether the component of that name is signed, with or without parameters.
    func covers(_ name: String) -> Bool { components.contains { $0.name == name } }
}

extension MessagePlan {
    /// Signature parameters of one request: the values of `Signature-Input` (§2.3).
    func parameters(
        created: Int64, keyID: String?, algorithm: MessageAlgorithm, nonce: String?
    ) -> StructuredParameters {
        var parameters = StructuredParameters()
        parameters["created"] = .integer(created)
        if let lifetime { parameters["expires"] = .integer(created.saturatingAdd(lifetime)) }
        if let keyID { parameters["keyid"] = .string(keyID) }
        if namesAlgorithm { parameters["alg"] = .string(algorithm.registeredName) }
        if let nonce { parameters["nonce"] = .string(nonce) }
        if let tag { parameters["tag"] = .string(tag) }
        return parameters
    }
}

/// Algorithm of a message signature (RFC 9421 §3.3).
package enum MessageAlgorithm: String, Sendable, CaseIterable {
    /// ECDSA over P-256 with SHA-256 (§3.3.4).
    case ecdsaP256 = "ecdsa-p256"
    /// EdDSA over Curve25519 (§3.3.6).
    case ed25519
    /// HMAC with SHA-256 (§3.3.3).
    case hmac
    /// RSASSA-PSS with SHA-512 (§3.3.1).
    case rsaPSS = "rsa-pss"

    /// Name in the registry of the parameter `alg` (§6.2.2).
    package var registeredName: String { pair?.rawValue ?? "hmac-sha256" }

    /// Algorithm of a key pair; nil for a shared secret.
    package var pair: MessageKeyAlgorithm? {
        switch self {
        case .ecdsaP256: .ecdsaP256
        case .ed25519: .ed25519
        case .hmac: nil
        case .rsaPSS: .rsaPSS
        }
    }
}

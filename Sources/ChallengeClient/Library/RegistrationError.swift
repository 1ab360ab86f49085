// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// A challenge handler cannot be registered.
public struct RegistrationError: Error, Sendable, Equatable {
    /// The kinds.
    public enum Kind: Sendable, Equatable {
        /// There is a handler for that security check, or for a gateway of that name, already. MobileFirst replaces it in silence.
        case alreadyRegistered
        /// What was to say where the handler stands is no location pattern.
        case noLocation
    }

    /// The kind.
    public var kind: Kind
    /// What happened and what to do.
    public var detail: String

    /// A second handler for a security check.
    init(securityCheck: String) {
        kind = .alreadyRegistered
        detail =
            "A handler of the security check \"\(securityCheck)\" is registered already. Unregister that one first."
    }

    /// A second handler for a gateway.
    init(gateway: String) {
        kind = .alreadyRegistered
        detail =
            "A handler of a gateway \"\(gateway)\" is registered already. Unregister that one, or choose another name."
    }

    /// Not a pattern.
    init(_ error: LocationError, in text: String) {
        kind = .noLocation
        detail = "\"\(text)\" is no location pattern: \(error.reason)."
    }
}

extension RegistrationError: CustomStringConvertible {
    /// The detail.
    public var description: String { detail }
}

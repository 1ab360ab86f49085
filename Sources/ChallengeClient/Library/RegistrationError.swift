// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A challenge handler cannot be registered.
public struct RegistrationError: Error, Sendable, Equatable {
    /// The kinds.
    public enum Kind: Sendable, Equatable {
        /// There is a handler for that security check already. MobileFirst replaces it in silence.
        case alreadyRegistered
    }

    /// The kind.
    public var kind: Kind
    /// What happened and what to do.
    public var detail: String

    /// A second handler for a security check.
    init(_ kind: Kind, securityCheck: String) {
        self.kind = kind
        detail =
            "A handler of the security check \"\(securityCheck)\" is registered already. Unregister that one first."
    }
}

extension RegistrationError: CustomStringConvertible {
    /// The detail.
    public var description: String { detail }
}

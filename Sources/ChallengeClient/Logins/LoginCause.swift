// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What led to a login, and who: for the log and the audit record.
package struct LoginCause: Sendable, Equatable {
    /// What led to it; the raw value is for the log.
    package enum Kind: String, Sendable {
        /// The value of its credential has changed.
        case change = "credential-change"
        /// It was asked whether the upstream serves.
        case check = "upstream-check"
        /// `countersign login`.
        case command
        /// An earlier one has failed a while ago.
        case recovery
        /// Its session nears its end.
        case renewal
        /// A caller's request.
        case request
        /// The session is to be there before the first request.
        case start = "at-start"
    }

    /// What led to it.
    package let kind: Kind
    /// Whose request it was.
    package let exchange: ExchangeID?
    /// The uid of that caller, where the kernel tells it.
    package let user: UInt32?

    /// A cause.
    package init(_ kind: Kind, exchange: ExchangeID? = nil, user: UInt32? = nil) {
        self.kind = kind
        self.exchange = exchange
        self.user = user
    }

    /// True if a session that still serves is to be replaced.
    package var isRenewal: Bool { kind == .renewal || kind == .change }
}

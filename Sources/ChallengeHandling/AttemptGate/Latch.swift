// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Key of a latch: one challenge's use of one credential at one origin.
public struct LatchKey: Sendable, Hashable {
    /// Origin of the upstream.
    public var origin: Origin
    /// Name of the challenge in the configuration.
    public var challenge: String
    /// Name of the credential.
    public var credential: String

    /// Creates a key.
    public init(origin: Origin, challenge: String, credential: String) {
        self.origin = origin
        self.challenge = challenge
        self.credential = credential
    }
}

/// Record that a credential was rejected and must not be sent again.
public struct Latch: Sendable, Equatable {
    /// Reason for closing.
    public enum Reason: String, Sendable {
        /// The server locked the account or blocked the check.
        case locked
        /// The server rejected the value.
        case rejected
    }

    /// Reason for closing.
    public var reason: Reason
    /// Time of closing in ms since 1970.
    public var closedAt: Int64
    /// Time of opening in ms since 1970; nil if only a changed credential or an operator opens the latch.
    public var opensAt: Int64?
    /// Statement that decided, as a part of a sentence: "it is the login page again". Empty if unknown.
    public var evidence: String

    /// Creates a latch.
    public init(reason: Reason, closedAt: Int64, opensAt: Int64? = nil, evidence: String = "") {
        self.evidence = evidence
        self.reason = reason
        self.closedAt = closedAt
        self.opensAt = opensAt
    }

    /// True if the latch is still closed at `now`, in ms since 1970.
    func isClosed(at now: Int64) -> Bool { opensAt.map { $0 > now } ?? true }
}

/// Record that a server accepted a value, so that a later refusal at some address does not reject the value.
public struct Acceptance: Sendable, Equatable {
    /// Address that accepted the value.
    public struct Address: Sendable, Equatable {
        /// Path of the request, without a query.
        public let path: String
        /// True if the address had asked for the value: an open address accepts anything.
        public let wasAsked: Bool

        /// Creates an address.
        public init(path: String, wasAsked: Bool = true) {
            self.path = path
            self.wasAsked = wasAsked
        }
    }

    /// Maximum length of a stored path, in bytes.
    public static let longestPath = 1024
    /// Maximum number of addresses.
    public static let mostAddresses = 4

    /// Addresses that accepted the value, newest first; empty if unknown or too long.
    public private(set) var addresses: [Address]
    /// True if the value was accepted where it was asked for, so that no trial is needed.
    public private(set) var wasAsked: Bool
    /// Time of the last acceptance in ms since 1970.
    public var at: Int64
    /// The form with which the value was accepted; nil if it was not accepted by a page's form.
    public var form: AcceptedForm?

    /// Creates a record of one acceptance.
    public init(path: String?, at: Int64, wasAsked: Bool = true, form: AcceptedForm? = nil) {
        self.init(path.map { [Address(path: $0, wasAsked: wasAsked)] } ?? [], at: at, wasAsked: wasAsked)
        self.form = form
    }

    /// Creates a record with several addresses, newest first. Too long ones are left out.
    init(_ addresses: [Address], at: Int64, wasAsked: Bool) {
        self.addresses = Array(addresses.filter { $0.path.utf8.count <= Self.longestPath }.prefix(Self.mostAddresses))
        self.wasAsked = wasAsked
        self.at = at
    }

    /// Path of the newest address, if known.
    public var path: String? { addresses.first?.path }

    /// Returns this acceptance together with earlier ones of the same value.
    ///
    /// Of too many addresses the oldest goes, one that had not asked before any other: callers choose those.
    func adding(_ earlier: Acceptance) -> Acceptance {
        var merged = self
        merged.wasAsked = wasAsked || earlier.wasAsked
        merged.form = form ?? earlier.form
        merged.addresses = addresses.map { new in
            let known = earlier.addresses.contains { $0.path == new.path && $0.wasAsked }
            return Address(path: new.path, wasAsked: new.wasAsked || known)
        }
        merged.addresses += earlier.addresses.filter { old in !addresses.contains { $0.path == old.path } }
        while merged.addresses.count > Self.mostAddresses {
            merged.addresses.remove(at: merged.addresses.lastIndex { !$0.wasAsked } ?? merged.addresses.count - 1)
        }
        return merged
    }

    /// Returns true if this record already has the address, with at least that evidence.
    package func has(_ address: Address) -> Bool {
        addresses.contains { $0.path == address.path && ($0.wasAsked || !address.wasAsked) }
    }
}

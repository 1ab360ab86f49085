// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The address at which a gateway asked last, for logins that no response led to: a renewal, or a request whose body cannot be
/// sent twice. It is behind the login for certain, which cannot be said of the upstream's own address.
public final class ChallengedAddress: Sendable {
    private let last = Mutex<WebURL?>(nil)

    /// None yet.
    public init() {}

    /// The address for a login on that occasion, which is remembered where a response led to it.
    public func address(for occasion: LoginOccasion) -> WebURL? {
        last.withLock { last in
            if let challenge = occasion.challenge { last = challenge.url }
            return last
        }
    }
}

/// The challenged addresses of all gateways: the same for every upstream of an origin, whose sessions are the same, and after a
/// reload.
public final class ChallengedAddresses: Sendable {
    private let known = Mutex<[LatchKey: ChallengedAddress]>([:])

    /// None yet.
    public init() {}

    /// That of a challenge, a credential and an origin.
    public func address(of key: LatchKey) -> ChallengedAddress {
        known.withLock { known in
            if let there = known[key] { return there }
            let made = ChallengedAddress()
            known[key] = made
            return made
        }
    }
}

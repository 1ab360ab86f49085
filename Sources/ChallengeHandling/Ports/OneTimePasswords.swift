// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Computes one-time passwords from the time (RFC 6238), and remembers which were used.
public protocol OneTimePasswords: Sendable {
    /// The password of the present step of `seed`, which is used up by that. `credential` is the name that errors tell.
    /// Throws where the seed is none, and `oneTimePasswordUsed` where that of the present step is used up already: servers
    /// take each once (RFC 6238 §5.2).
    func password(from seed: Secret, of credential: String) throws(TemplateError) -> Secret
    /// Throws what `password` would throw at this moment, and uses nothing up: for a login that sends something else first.
    func check(_ seed: Secret, of credential: String) throws(TemplateError)
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// One-time passwords by the wall clock.
///
/// The attempt gate records used steps, so that no step is used again after a restart.
public struct TimedPasswords: OneTimePasswords {
    private let digests: any MessageDigests
    private let attempts: any AttemptControl
    private let now: @Sendable () -> Int64

    /// Creates passwords by the clock `now` (ms since 1970), for steps that are unused in `attempts`.
    public init(
        digests: any MessageDigests, attempts: any AttemptControl, now: @escaping @Sendable () -> Int64
    ) {
        self.digests = digests
        self.attempts = attempts
        self.now = now
    }

    /// Returns the password of the current step, and marks the step as used.
    ///
    /// A step that cannot be stored is still recorded until a restart.
    public func password(from seed: Secret, of credential: String) async throws(TemplateError) -> Secret {
        let (parameters, step) = try await step(of: seed, credential, isUsed: true)
        return parameters.password(step: step, digests: digests)
    }

    /// Throws if there is no unused password at this moment.
    public func check(_ seed: Secret, of credential: String) async throws(TemplateError) {
        _ = try await step(of: seed, credential, isUsed: false)
    }

    /// Returns the current step of `seed`, which is marked as used if `isUsed` is true.
    private func step(
        of seed: Secret, _ credential: String, isUsed: Bool
    ) async throws(TemplateError) -> (parameters: OneTimePasswordParameters, step: Int64) {
        let parameters: OneTimePasswordParameters
        do {
            parameters = try OneTimePasswordParameters(seed)
        } catch {
            throw .oneTimePasswordSeed(credential: credential, reason: error.reason)
        }
        let now = max(0, now())
        let step = now / parameters.period
        let name = Base64.encode(digests.authenticationCode(.sha256, key: parameters.key, of: Array("used".utf8)), .url)
        let usedUntil = await attempts.use(
            code: name, stepEnding: (step + 1) * parameters.period, isUsed: isUsed, now: now)
        if let usedUntil { throw .oneTimePasswordUsed(credential: credential, nextAt: usedUntil) }
        return (parameters, step)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// One-time passwords by the wall clock. The attempt gate knows the steps that were used, so that a restart uses none a second time.
public struct TimedPasswords: OneTimePasswords {
    private let digests: any MessageDigests
    private let attempts: any AttemptControl
    private let now: @Sendable () -> Int64

    /// Passwords by the clock `now` (milliseconds since 1970), each of a step that `attempts` has not seen used.
    public init(
        digests: any MessageDigests, attempts: any AttemptControl, now: @escaping @Sendable () -> Int64
    ) {
        self.digests = digests
        self.attempts = attempts
        self.now = now
    }

    /// The password of the present step. What cannot be kept is remembered until a restart all the same.
    public func password(from seed: Secret, of credential: String) throws(TemplateError) -> Secret {
        let (recipe, step) = try step(of: seed, credential, isUsed: true)
        return recipe.password(step: step, digests: digests)
    }

    /// Whether there is one at this moment.
    public func check(_ seed: Secret, of credential: String) throws(TemplateError) {
        _ = try step(of: seed, credential, isUsed: false)
    }

    /// The present step of `seed`, which is used up from now on where `isUsed` says so.
    private func step(
        of seed: Secret, _ credential: String, isUsed: Bool
    ) throws(TemplateError) -> (recipe: OneTimePasswordRecipe, step: Int64) {
        let recipe: OneTimePasswordRecipe
        do {
            recipe = try OneTimePasswordRecipe(seed)
        } catch {
            throw .oneTimePasswordSeed(credential: credential, reason: error.reason)
        }
        let now = max(0, now())
        let step = now / recipe.period
        let name = Base64.encode(digests.authenticationCode(.sha256, key: recipe.key, of: Array("used".utf8)), .url)
        let usedUntil = attempts.use(code: name, stepEnding: (step + 1) * recipe.period, isUsed: isUsed, now: now)
        if let usedUntil { throw .oneTimePasswordUsed(credential: credential, nextAt: usedUntil) }
        return (recipe, step)
    }
}

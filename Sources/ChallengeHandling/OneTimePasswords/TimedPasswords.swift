// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets
internal import Synchronization

/// One-time passwords by the wall clock. The steps used are kept, so that a restart uses none a second time.
public final class TimedPasswords: OneTimePasswords {
    /// The name that the steps used are kept under: an object, by the seed's digest.
    package static let stateName = "totp-steps"
    /// Steps used are forgotten a while after nobody takes them any more; and a clock that was so far ahead was wrong.
    private static let longest: Int64 = 2 * 3_600_000

    private let digests: any MessageDigests
    private let state: any StateStore
    private let now: @Sendable () -> Int64
    /// When the last step used ends, by the seed's digest, in milliseconds since 1970.
    private let used = Mutex<[String: Int64]>([:])

    /// Passwords by the clock `now` (milliseconds since 1970); what is used is kept in `state`.
    public init(digests: any MessageDigests, state: any StateStore, now: @escaping @Sendable () -> Int64) {
        self.digests = digests
        self.state = state
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
        let end = (step + 1) * recipe.period
        let name = Base64.encode(digests.authenticationCode(.sha256, key: recipe.key, of: Array("used".utf8)), .url)
        let usedUntil = used.withLock { used -> Int64? in
            used.merge(kept(), uniquingKeysWith: max)
            let near = (now - Self.longest)...now.saturatingAdd(Self.longest)
            used = used.filter { near.contains($0.value) }
            if let until = used[name], until >= end { return until }
            guard isUsed else { return nil }
            used[name] = end
            let steps = JSONValue.object(used.mapValues { .integer($0) })
            try? state.save(Secret(steps.serialized()), as: Self.stateName)
            return nil
        }
        if let usedUntil { throw .oneTimePasswordUsed(credential: credential, nextAt: usedUntil) }
        return (recipe, step)
    }

    private func kept() -> [String: Int64] {
        guard let kept = try? state.load(Self.stateName) else { return [:] }
        return JSONValue(parsing: kept.revealBytes(), within: .local)?.objectValue?.compactMapValues(\.integerValue)
            ?? [:]
    }
}

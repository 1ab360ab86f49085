// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Settings

/// Looks at the session engine that hosts share: its key, and whether it answers.
struct EngineDiagnosis {
    /// How long the engine has to answer.
    private static let patience = Duration.seconds(8)
    private static let part = "sessions"

    let settings: SharedSessionSettings
    let loop: CommandLoop
    let world: World

    func run() async -> [Diagnosis] {
        var found = [await key()]
        let plan: RedisEnginePlan
        do throws(CompositionError) {
            plan = try RedisEnginePlan(settings)
        } catch {
            return found + [.failed(Self.part, "tls", error.description, "correct the configuration", code: EX_CONFIG)]
        }
        switch await loop.firstNews(of: plan, credentials: world.sources, within: Self.patience) {
        case .connected: found.append(.good(Self.part, "engine", "answers"))
        case .away(let reason):
            found.append(
                .failed(
                    Self.part, "engine", "does not answer: \(reason)",
                    "see that it runs, that `sessions.store` is its address, and what `sessions.credential` may do there"
                ))
        case .latches, .session: break
        }
        return found
    }

    private func key() async -> Diagnosis {
        await world.fleetKeys?.refresh(from: world.sources)
        if world.fleetKeys?.isThere == true { return .good(Self.part, "key", "the credential \(settings.key) has one") }
        return .failed(
            Self.part, "key", "the credential \(settings.key) has no field `key` of 32 bytes or more",
            "make one by `openssl rand -base64 32`, the same on all hosts", code: EX_CONFIG)
    }
}

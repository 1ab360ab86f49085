// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import EventLoop
internal import Glibc
internal import HTTPTypes
internal import Settings

/// The logins that `countersign login` runs, on a loop of its own.
struct LoginRuns {
    private struct Run: Sendable {
        let standing: Authenticator
        let scope: Scope
        let plan: UpstreamPlan
    }

    /// The names that can be asked for.
    private(set) var known: [String] = []
    private var runs: [Run] = []
    private let world: World

    /// The logins of `settings`, or those that `challenge` means, in `world`.
    init(settings: Settings, challenge: String?, world: World) throws {
        self.world = world
        let composition = ProxyComposition(settings: settings, material: world.material)
        for plan in try composition.upstreams().flatMap(\.forEverybody) { add(plan, meaning: challenge) }
    }

    /// Adds the logins of `plan` that `challenge` means, or all; once each, though they stand in front of several users.
    private mutating func add(_ plan: UpstreamPlan, meaning challenge: String?) {
        for login in plan.logins.all
        where login.refusal == nil && !runs.contains(where: { $0.standing.key == login.key }) {
            known += [login.name] + login.checks.map(\.name)
            let asked = login.checks.filter {
                challenge == nil || challenge == $0.name || challenge == login.name
            }
            guard challenge == nil || challenge == login.name || !asked.isEmpty else { continue }
            // As `login(check)` of IBM's clients: the check's own name is the scope that demands it.
            let scope = login.defaultScope.union(Scope(asked.map(\.check)))
            runs.append(Run(standing: login, scope: scope, plan: plan))
        }
    }

    var isEmpty: Bool { runs.isEmpty }

    /// A login that is over.
    struct Ended: Sendable {
        let upstream: String
        let challenge: String
        let result: Result<Session, LoginFailure>
    }

    /// Runs them one after the other, or those at one upstream.
    func results(at upstream: String? = nil, told transcript: LoginTranscript? = nil) -> AsyncStream<Ended> {
        let runs = runs.filter { upstream == nil || $0.plan.name == upstream }
        let services = world.services
        return AsyncStream { stream in
            let task = Task {
                guard let loop = try? await CommandLoop.start(services: services) else {
                    let reason = "libcurl, or the thread that it needs, cannot be had on this machine."
                    let failure = LoginFailure(.failed, challenge: "", detail: reason)
                    stream.yield(Ended(upstream: "", challenge: "", result: .failure(failure)))
                    stream.finish()
                    return
                }
                for run in runs {
                    var sideRequests = await loop.sideRequests(for: run.standing, at: run.plan)
                    if let transcript {
                        sideRequests = NarratedSideRequests(requests: sideRequests, transcript: transcript)
                    }
                    let key = run.standing.key
                    let login = run.standing.login(LoginOccasion(scope: run.scope))
                    services.observer.loginBegan(key, LoginCause(.command))
                    var (result, duration) = await services.run(login, for: key, sideRequests: sideRequests)
                    if case .success(let session) = result, session.isEmpty {
                        let detail =
                            "Nothing was asked for where the login looked, so there was nothing to win. Name a protected "
                            + "place by `at`, or ask for one through the daemon."
                        result = .failure(LoginFailure(.failed, challenge: key.challenge, detail: detail))
                    }
                    services.observer.loginEnded(key, result, LoginCause(.command), after: duration)
                    stream.yield(Ended(upstream: run.plan.name, challenge: key.challenge, result: result))
                }
                loop.stop()
                stream.finish()
            }
            stream.onTermination = { _ in task.cancel() }
        }
    }
}

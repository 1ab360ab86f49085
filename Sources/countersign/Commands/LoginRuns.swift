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
        let login: any SessionLogin
        let key: SessionKey
        let plan: UpstreamPlan
    }

    /// The names that can be asked for.
    private(set) var known: [String] = []
    private var runs: [Run] = []
    private let world: World

    init(settings: Settings, challenge: String?) throws {
        let asker: any SecretAsker =
            isatty(STDIN_FILENO) == 1 ? TerminalPrompt() : PasswordAgents(environment: Process.environment)
        world = try World(settings: settings, observer: PrintedLogin(), asker: asker)
        let composition = GatewayComposition(settings: settings, clients: world.mobileFirstClients)
        let logins = LoginComposition(settings: settings, clients: world.mobileFirstClients)
        for (plan, upstream) in zip(try composition.upstreams(), settings.upstreams) {
            for login in plan.logins.all {
                var checks: [CredentialChallengeHandler] = []
                if login.isMobileFirst, let api = upstream.mobileFirst?.api {
                    checks = logins.securityChecks(of: upstream, api: api)
                }
                known += [login.name] + checks.map(\.challengeName)
                let asked = checks.filter {
                    challenge == nil || challenge == $0.challengeName || challenge == login.name
                }
                guard challenge == nil || challenge == login.name || !asked.isEmpty else { continue }
                // As `login(check)` of IBM's clients: the check's own name is the scope that demands it.
                let scope = login.defaultScope.union(Scope(asked.map(\.securityCheck)))
                runs.append(Run(login: login.login(LoginOccasion(scope: scope)), key: login.key, plan: plan))
            }
        }
    }

    var isEmpty: Bool { runs.isEmpty }

    /// Runs them one after the other.
    func results() -> AsyncStream<Result<Session, LoginFailure>> {
        let (runs, services) = (runs, world.services)
        return AsyncStream { stream in
            let task = Task {
                guard let loop = try? await CommandLoop.start(services: services) else {
                    let reason = "libcurl, or the thread that it needs, cannot be had on this machine."
                    stream.yield(.failure(LoginFailure(.failed, challenge: "", detail: reason)))
                    stream.finish()
                    return
                }
                for run in runs {
                    let sideRequests = await loop.sideRequests(for: run.login, at: run.plan)
                    services.observer.loginBegan(run.key, LoginCause(.command))
                    var (result, duration) = await services.run(run.login, for: run.key, sideRequests: sideRequests)
                    if case .success(let session) = result, session.isEmpty {
                        let detail =
                            "Nothing was asked for where the login looked, so there was nothing to win. Name a protected "
                            + "place by `at`, or ask for one through the daemon."
                        result = .failure(LoginFailure(.failed, challenge: run.key.challenge, detail: detail))
                    }
                    services.observer.loginEnded(run.key, result, LoginCause(.command), after: duration)
                    stream.yield(result)
                }
                loop.stop()
                stream.finish()
            }
            stream.onTermination = { _ in task.cancel() }
        }
    }
}

/// A loop with a client on it, for a command.
private struct CommandLoop: Sendable {
    private let thread: EventLoopThread
    private let runtime: LoopBound<ClientRuntime>

    static func start(services: ClientServices) async throws -> CommandLoop {
        let (stream, continuation) = AsyncStream<LoopBound<ClientRuntime>>.makeStream()
        let thread = try EventLoopThread(name: "login") { loop in
            if let runtime = try? ClientRuntime(loop: loop, worker: 0, services: services, connections: 8) {
                continuation.yield(LoopBound(runtime, to: loop))
            }
            continuation.finish()
        }
        for await runtime in stream { return CommandLoop(thread: thread, runtime: runtime) }
        throw CompositionError("libcurl cannot be initialised")
    }

    func sideRequests(for login: any SessionLogin, at plan: UpstreamPlan) async -> any SideRequests {
        await withCheckedContinuation { continuation in
            thread.loop.execute {
                continuation.resume(
                    returning: runtime.value.sideRequests(for: login, at: plan, cause: LoginCause(.command)))
            }
        }
    }

    func stop() {
        thread.loop.stop()
        thread.join()
    }
}

/// Prints a login as it goes, with timings.
private struct PrintedLogin: LoginObserver {
    private let began = ContinuousClock.now

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        Process.say("\(key.challenge) at \(key.origin)")
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        Process.say("  \(stamp())  \(step.text)")
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        switch result {
        case .success(let session):
            let fields = session.fields.map(\.name.rawName).joined(separator: ", ")
            let use = fields.isEmpty ? "it sends cookies" : "it injects \(fields)"
            let life = session.expiresAt.map { "; it ends in \(max(0, $0 - Process.wallClock()) / 1000) s" } ?? ""
            Process.say("  \(stamp())  session won: \(use)\(life)")
        case .failure(let failure):
            Process.say("  \(stamp())  \(failure.code.rawValue): \(failure.detail)")
            if !failure.cause.isEmpty { Process.say("  \(stamp())  cause: \(failure.cause)") }
        }
    }

    private func stamp() -> String {
        let milliseconds = Int((ContinuousClock.now - began) / .milliseconds(1))
        let text = "\(milliseconds)"
        return String(repeating: " ", count: max(0, 6 - text.count)) + text + " ms"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeClient
internal import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
internal import Settings

struct LoginCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login", abstract: "Run a login now and print the conversation, redacted.",
        discussion: """
            Run by the daemon if it is running, as its user and with its credentials. Without a name, runs all logins of the \
            configuration. Exits with 0 only if every session was established. Obeys \
            latches as the daemon does: a rejected credential is not sent again. Prints each step and each request with its \
            duration; of a request it prints method, origin, path and status.
            """)

    @OptionGroup var daemon: DaemonOptions

    @Argument(
        help: "The challenge, or the name of an upstream with `mobilefirst`.", completion: NameCompletion.challenges)
    var challenge: String?

    @Flag(name: .long, help: "Print one JSON list of logins, each with its steps.")
    var json = false

    func run() throws {
        if try daemon.hasRun("/login", [challenge.map { ("name", $0) }, json ? ("json", "1") : nil]) { return }
        let settings = try daemon.configuration.load()
        let transcript = LoginTranscript(isPrinted: !json)
        let context = try DaemonContext(settings: settings, observer: transcript, asker: CommandAsker.present)
        let runs = try LoginRuns(settings: settings, challenge: challenge, context: context)
        guard !runs.isEmpty else {
            let names = runs.names.joined(separator: ", ")
            throw Failure(
                challenge.map { "there is no login \($0); there are: \(names)" } ?? "the configuration has no login",
                code: EX_USAGE)
        }
        let failed = Blocking.run {
            await runs.results(transcript: transcript).contains { ended in
                if case .failure = ended.result { true } else { false }
            }
        }
        if json { Process.print(transcript.document) }
        if failed {
            if !json { Process.printError("what each code means: \(ManualPage.troubleshooting.path)") }
            throw ExitCode(EX_UNAVAILABLE)
        }
    }
}

/// The logins that `countersign login` runs on a separate event loop.
struct LoginRuns {
    private struct Run: Sendable {
        let authenticator: Authenticator
        let scope: Scope
        let plan: UpstreamPlan
    }

    /// The names with which a login can be chosen.
    private(set) var names: [String] = []
    private var runs: [Run] = []
    private let context: DaemonContext

    /// The logins of `settings`, or only those named `challenge`.
    init(settings: Settings, challenge: String?, context: DaemonContext) throws {
        self.context = context
        let composition = ProxyComposition(
            settings: settings, material: context.material, sources: context.sources.present.sources)
        for plan in try composition.upstreams().flatMap(\.forEverybody) { add(plan, meaning: challenge) }
    }

    /// Adds the logins of `plan`, or only those named `challenge`. A login of several users is added once.
    private mutating func add(_ plan: UpstreamPlan, meaning challenge: String?) {
        for login in plan.logins.all
        where login.refusal == nil && !runs.contains(where: { $0.authenticator.key == login.key }) {
            names += [login.name] + login.checks.map(\.name)
            let asked = login.checks.filter {
                challenge == nil || challenge == $0.name || challenge == login.name
            }
            guard challenge == nil || challenge == login.name || !asked.isEmpty else { continue }
            // As in `login(check)` of IBM's clients, the check's own name is the scope that demands the check.
            let scope = login.defaultScope.union(Scope(asked.map(\.check)))
            runs.append(Run(authenticator: login, scope: scope, plan: plan))
        }
    }

    /// True if no login was chosen.
    var isEmpty: Bool { runs.isEmpty }

    /// A login that has ended.
    struct Ended: Sendable {
        let upstream: String
        let challenge: String
        let result: Result<Session, LoginFailure>
        /// True if nothing was sent, so that the server has not judged the credential.
        var isSilent = false
    }

    /// Runs the logins one after the other, or only those at `upstream`.
    func results(at upstream: String? = nil, transcript: LoginTranscript? = nil) async -> [Ended] {
        guard let loop = try? await CommandLoop.start(services: context.services) else {
            let reason = "libcurl, or a thread for it, cannot be started on this machine."
            let failure = LoginFailure(.failed, challenge: "", detail: reason)
            return [Ended(upstream: "", challenge: "", result: .failure(failure))]
        }
        defer { loop.stop() }
        var ended: [Ended] = []
        for run in runs where upstream == nil || run.plan.name == upstream {
            ended.append(await result(of: run, on: loop, transcript))
        }
        return ended
    }

    private func result(of run: Run, on loop: CommandLoop, _ transcript: LoginTranscript?) async -> Ended {
        // An operator who asks for a login decides about the value's next submission.
        let isOnDemand = transcript != nil
        // The transcript counts the requests, even if it is not printed.
        let transcript = transcript ?? LoginTranscript(isPrinted: false)
        let sideRequests = TranscribedSideRequests(
            requests: await loop.sideRequests(for: run.authenticator, at: run.plan), transcript: transcript)
        let services = context.services
        let key = run.authenticator.key
        let login = run.authenticator.login(LoginOccasion(scope: run.scope))
        services.observer.loginBegan(key, LoginCause(.command))
        if isOnDemand { services.gate.renewBudget(of: key.challenge) }
        let before = transcript.requests
        var (result, duration) = await services.run(
            login, for: key, asking: run.plan.sources, sideRequests: sideRequests,
            turnWithin: LoginLimit(run.plan.timeouts.login, on: loop.loop))
        if case .success(let session) = result, session.isEmpty {
            let detail =
                "The server's answer at the requested address started no login, so none was run: it demanded none, or one "
                + "that this challenge does not accept (scheme, realm, detect). `countersign doctor` shows the answer. Set `at` "
                + "to a protected path, or send a request for one through the daemon."
            result = .failure(LoginFailure(.failed, challenge: key.challenge, detail: detail))
        }
        services.observer.loginEnded(key, result, LoginCause(.command), after: duration)
        return Ended(
            upstream: run.plan.name, challenge: key.challenge, result: result, isSilent: transcript.requests == before)
    }
}

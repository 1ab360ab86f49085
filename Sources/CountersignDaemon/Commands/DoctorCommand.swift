// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ArgumentParser
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Curl
internal import Glibc
internal import Settings
internal import SettingsReading
internal import System

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check everything that a configuration needs, and say what to fix.",
        discussion: """
            Checks this machine (listeners, directories, credentials, limits). For each upstream, checks its name, its addresses, \
            TLS and certificates, the clocks, the answer to a request without a login and the challenge that would take it, the \
            credentials by name, and the latches. Sends one anonymous GET to each upstream; sends no secret unless --login is \
            given. Run by the daemon if it is running, as its user; else run it as root or as the daemon's user. The first line says which \
            process looked. It asks for no value without a terminal. Exits with 0 if no check failed, 78 if the configuration is wrong, 77 \
            if a permission is missing, 69 if something cannot be reached.
            """)

    @OptionGroup var daemon: DaemonOptions

    private var configuration: ConfigurationOptions { daemon.configuration }

    @Argument(help: "The upstreams to check. Default: all.", completion: NameCompletion.upstreams)
    var upstreams: [String] = []

    @Option(name: .long, help: "The path to request at each upstream, perhaps with a query, below the path of its url.")
    var path = ""

    @Flag(
        name: .long,
        help: "Run the logins too, as `login` does. This sends the credentials, and a wrong one costs an attempt.")
    var login = false

    @Flag(name: .long, help: "Print one JSON object.")
    var json = false

    func validate() throws {
        guard DaemonCommand.isPath(path) else {
            throw ValidationError(
                "--path is no path that a request can have: percent-encode spaces, control characters, # and bytes above 0x7E"
            )
        }
    }

    func run() throws {
        let parameters: [(String, String)?] =
            upstreams.map { ("upstream", $0) }
            + [path.isEmpty ? nil : ("path", path), login ? ("login", "1") : nil, json ? ("json", "1") : nil]
        if try daemon.hasRun("/doctor", parameters, mayAsk: CommandAsker.hasTerminal) { return }
        let (loaded, problems) = ConfigurationFile(path: configuration.config).read()
        guard let settings = loaded else {
            for problem in problems { Process.printError(problem.description) }
            throw ExitCode(ConfigurationFile.exitCode(of: problems))
        }
        if let unknown = upstreams.first(where: { settings.upstream(named: $0) == nil }) {
            let names = settings.upstreams.map(\.name).joined(separator: ", ")
            throw Failure("there is no upstream \(unknown); there are: \(names)", code: EX_USAGE)
        }
        let looker = DoctorLooker(daemon: daemon)
        try looker.requireAccess(settings)
        OpenFileLimit.raise()
        var report = DoctorReport()
        let local =
            [looker.diagnosis, fileDiagnosis(problems)] + ListenerDiagnosis(settings: settings).run()
            + LocalDiagnosis(settings: settings, environment: Process.environment).run()
        add(local + looker.problems() + looker.boundSessions(), to: &report)
        try diagnoseUpstreams(settings, &report)
        if json {
            Process.print(report.json)
        } else {
            Process.print(report.summary)
            if report.exitCode != EX_OK { Process.print("more: \(ManualPage.troubleshooting.path)") }
        }
        if report.exitCode != EX_OK { throw ExitCode(report.exitCode) }
    }

    /// Adds findings to the report, and prints them unless the report is JSON.
    private func add(_ found: [Diagnosis], to report: inout DoctorReport) {
        var part = report.diagnoses.last?.part
        report.add(found)
        guard !json else { return }
        for diagnosis in found {
            if diagnosis.part != part { Process.print(diagnosis.part) }
            part = diagnosis.part
            for line in diagnosis.lines { Terminal.print(line) }
        }
    }

    private func fileDiagnosis(_ problems: [Problem]) -> Diagnosis {
        let libcurl = CurlFeatures.installed
        if let missing = libcurl.missing().first {
            return .failed("local", "libcurl", missing, "install a libcurl that has this feature")
        }
        if let first = problems.first {
            return .warning(
                "local", "file",
                "\(configuration.config): \(first.message)\(problems.count > 1 ? ", and \(problems.count - 1) more" : "")",
                "run: countersign check --config \(configuration.config)")
        }
        return .good("local", "file", "\(configuration.config) has no problems")
    }

    // MARK: Upstreams

    private func diagnoseUpstreams(_ settings: Settings, _ report: inout DoctorReport) throws {
        let state = try state()
        defer { if state.isTemporary, let path = state.path { TemporaryFolder.remove(path) } }
        let context: DaemonContext
        let plans: [UpstreamPlan]
        do {
            context = try DaemonContext(
                settings: settings, stateDirectory: state.path, observer: SilentObserver(), asker: CommandAsker.present)
            plans = try ProxyComposition(
                settings: settings, material: context.material, sources: context.sources.present.sources
            ).upstreams()
        } catch let error as CompositionError {
            add(
                [.failed("local", "tls", error.description, "fix the configuration", code: EX_CONFIG)], to: &report)
            return
        } catch let error as StateError {
            add(
                [.failed("local", "state", error.reason, DirectoryRemedy.text(for: error.reason), code: EX_NOPERM)],
                to: &report)
            return
        }
        add(callers(settings, context), to: &report)
        if let sessions = settings.sessions {
            let found = Blocking.run { () -> [Diagnosis]? in
                guard let loop = try? await CommandLoop.start(services: context.services) else { return nil }
                defer { loop.stop() }
                return await SessionStoreDiagnosis(settings: sessions, loop: loop, context: context).run()
            }
            add(found ?? [], to: &report)
        }
        for plan in plans where upstreams.isEmpty || upstreams.contains(plan.name) {
            let path = path
            let found = Blocking.run { () -> [Diagnosis]? in
                guard let loop = try? await CommandLoop.start(services: context.services) else { return nil }
                defer { loop.stop() }
                return await UpstreamDiagnosis(plan: plan, path: path, loop: loop, context: context).run()
            }
            add(
                found ?? [
                    .failed(
                        "upstream \(plan.name)", "libcurl", "cannot be initialised",
                        "check the free memory of this machine")
                ],
                to: &report)
            add(try logins(of: plan, settings, context), to: &report)
        }
    }

    /// Returns which tokens of callers are known, without the tokens.
    private func callers(_ settings: Settings, _ context: DaemonContext) -> [Diagnosis] {
        let names = settings.callerCredentials
        guard !names.isEmpty else { return [] }
        let faults = Blocking.run { await context.callerTokens.faults(of: names) }
        return names.sorted().map { name in
            guard let fault = faults[name] else { return .good("local", "callers", "the token of \(name) is known") }
            return .failed(
                "local", "callers", "the token of \(name) is not known: \(fault)",
                "until then, the daemon refuses this caller", code: EX_CONFIG)
        }
    }

    private func logins(of plan: UpstreamPlan, _ settings: Settings, _ context: DaemonContext) throws -> [Diagnosis] {
        let part = "upstream \(plan.name)"
        guard !plan.logins.isEmpty else { return [] }
        guard login else {
            return [
                .note(part, "login", "not tried; --login tries it, and costs an attempt if the credential is wrong")
            ]
        }
        let runs = try LoginRuns(settings: settings, challenge: nil, context: context)
        let name = plan.name
        return Blocking.run {
            await runs.results(at: name).map { ended in
                switch ended.result {
                case .success where ended.isSilent:
                    .note(
                        part, "login",
                        "\(ended.challenge): nothing was sent; a request through the daemon shows if the server accepts it"
                    )
                case .success: .good(part, "login", "\(ended.challenge): a session was established")
                case .failure(let failure):
                    .failed(part, "login", "\(ended.challenge): \(failure.code.rawValue): \(failure.detail)", "")
                }
            }
        }
    }

    /// Returns the state directory, and true if it is a temporary one. A diagnosis creates no state directory.
    private func state() throws -> (path: String?, isTemporary: Bool) {
        // The outcome of a login must be stored, a rejection above all.
        if login { return (nil, false) }
        let path = try StateDirectory.locate(environment: Process.environment, uid: getuid())
        if FileSystem.allows(path, R_OK | W_OK | X_OK) { return (path, false) }
        return (try TemporaryFolder.make("doctor"), true)
    }
}

/// An observer that ignores all logins.
private struct SilentObserver: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Curl
internal import Glibc
internal import Settings
internal import SettingsReading

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Look at all that a configuration needs, and say what to fix.",
        discussion: """
            Looks at this machine (listeners, directories, credentials, limits), and for each upstream at its name, each of its \
            addresses, TLS with its certificates, the clocks, what a request without a login meets and which challenge would \
            answer that, the credentials by name, and the latches. Sends one anonymous GET, and no secret unless --login says \
            so. Run it as root or as the daemon's user. Ends with 0 if nothing has failed, with 78 for what is to be configured, 77 for \
            permissions, 69 for what cannot be reached.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Argument(help: "The upstreams to look at; without any all.")
    var upstreams: [String] = []

    @Option(name: .long, help: "The path that is asked for at each upstream, below that of its url.")
    var path = ""

    @Flag(
        name: .long,
        help: "Run the logins too, as `login` does. That sends the credentials, and a wrong one costs an attempt.")
    var login = false

    @Flag(name: .long, help: "As one JSON object.")
    var json = false

    func run() throws {
        let (loaded, problems) = Settings.load(
            path: configuration.config, environment: Process.environment, handlers: OwnHandlers.names,
            kinds: OwnHandlers.kinds)
        guard let settings = loaded else {
            for problem in problems { Process.complain(problem.description) }
            throw ExitCode(EX_CONFIG)
        }
        if let unknown = upstreams.first(where: { settings.upstream(named: $0) == nil }) {
            let names = settings.upstreams.map(\.name).joined(separator: ", ")
            throw Failure("there is no upstream \(unknown); there are: \(names)", code: EX_USAGE)
        }
        OpenFiles.raiseLimit()
        var report = DoctorReport()
        let local =
            [configured(problems)] + ListenerDiagnosis(settings: settings).run()
            + LocalDiagnosis(settings: settings, environment: Process.environment).run()
        tell(local, to: &report)
        try look(at: settings, &report)
        if json {
            Process.say(String(decoding: report.json.serialized(), as: UTF8.self))
        } else {
            Process.say(report.summary)
        }
        if report.exitCode != EX_OK { throw ExitCode(report.exitCode) }
    }

    private func tell(_ found: [Diagnosis], to report: inout DoctorReport) {
        var part = report.diagnoses.last?.part
        report.add(found)
        guard !json else { return }
        for diagnosis in found {
            if diagnosis.part != part { Process.say(diagnosis.part) }
            part = diagnosis.part
            for line in diagnosis.lines { Process.say(line) }
        }
    }

    private func configured(_ problems: [Problem]) -> Diagnosis {
        let libcurl = CurlFeatures.installed
        if let missing = libcurl.missing().first {
            return .failed("local", "libcurl", missing, "install another libcurl")
        }
        if let first = problems.first {
            return .warning(
                "local", "file",
                "\(configuration.config): \(first.message)\(problems.count > 1 ? ", and \(problems.count - 1) more" : "")",
                "run: countersign check --config \(configuration.config)")
        }
        return .good("local", "file", "\(configuration.config), read without a problem")
    }

    // MARK: Upstreams

    private func look(at settings: Settings, _ report: inout DoctorReport) throws {
        let state = try state()
        defer { if state.isTemporary, let path = state.path { TemporaryFolder.remove(path) } }
        let world: World
        let plans: [UpstreamPlan]
        do {
            world = try World(
                settings: settings, stateDirectory: state.path, observer: Silence(), asker: LoginCommand.asker)
            plans = try ProxyComposition(settings: settings, material: world.material).upstreams()
        } catch let error as CompositionError {
            tell(
                [.failed("local", "tls", error.description, "correct the configuration", code: EX_CONFIG)], to: &report)
            return
        } catch let error as StateError {
            tell(
                [.failed("local", "state", error.reason, "run this as the daemon's user", code: EX_NOPERM)], to: &report
            )
            return
        }
        if let sessions = settings.sessions {
            let found = Blocking.run { () -> [Diagnosis]? in
                guard let loop = try? await CommandLoop.start(services: world.services) else { return nil }
                defer { loop.stop() }
                return await EngineDiagnosis(settings: sessions, loop: loop, world: world).run()
            }
            tell(found ?? [], to: &report)
        }
        for plan in plans where upstreams.isEmpty || upstreams.contains(plan.name) {
            let pins = settings.upstream(named: plan.name)?.tls.pins ?? []
            let path = path
            let found = Blocking.run { () -> [Diagnosis]? in
                guard let loop = try? await CommandLoop.start(services: world.services) else { return nil }
                defer { loop.stop() }
                return await UpstreamDiagnosis(plan: plan, path: path, pins: pins, loop: loop, world: world).run()
            }
            tell(
                found ?? [.failed("upstream \(plan.name)", "libcurl", "cannot be initialised", "free some memory")],
                to: &report)
            tell(try logins(of: plan, settings, world), to: &report)
        }
    }

    private func logins(of plan: UpstreamPlan, _ settings: Settings, _ world: World) throws -> [Diagnosis] {
        let part = "upstream \(plan.name)"
        guard !plan.logins.isEmpty else { return [] }
        guard login else {
            return [
                .note(part, "login", "not tried; --login does that, and spends an attempt if the credential is wrong")
            ]
        }
        let runs = try LoginRuns(settings: settings, challenge: nil, world: world)
        let name = plan.name
        return Blocking.run {
            await runs.results(at: name).reduce(into: []) { found, ended in
                switch ended.result {
                case .success: found.append(.good(part, "login", "\(ended.challenge): a session was won"))
                case .failure(let failure):
                    found.append(
                        .failed(part, "login", "\(ended.challenge): \(failure.code.rawValue): \(failure.detail)", ""))
                }
            }
        }
    }

    /// The state directory, and whether it is one that goes with this process: a look makes none.
    private func state() throws -> (path: String?, isTemporary: Bool) {
        // What a login brings is to be kept: a rejection above all.
        if login { return (nil, false) }
        let path = try StateDirectory.locate(environment: Process.environment, uid: getuid())
        if unsafe access(path, R_OK | W_OK | X_OK) == 0 { return (path, false) }
        return (try TemporaryFolder.make("doctor"), true)
    }
}

/// Tells nobody.
private struct Silence: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {}
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import Credentials
internal import Glibc
internal import Logging
internal import Proxy
internal import Settings
internal import SettingsReading
internal import Systemd

/// The daemon: starts the proxy, tells the service manager, and answers signals on the main thread until it is to
/// end.
final class Daemon {
    /// How long a drain may take before what is left is turned away; the unit's TimeoutStopSec is longer.
    private static let drainTime = Duration.seconds(25)

    /// How long those who are turned away have to take that.
    private static let farewellTime = Duration.seconds(2)

    /// How long all logouts together may take.
    private static let logoutTime = Duration.seconds(5)

    private let path: String
    private let output: LogOutput
    private let logger: Logger
    private let notifier = ServiceNotifier()
    private let sockets: ListenSockets
    /// What the service manager has kept for this process.
    private let stored: [Int32]
    private var settings: Settings
    private let world: World
    private let proxy: ProxyServer
    private let pulse: WorkerPulse
    private let status: DaemonStatus
    private let watch: CredentialWatch?
    private let logins: LoginLog
    /// The access log in force, if there is one.
    private var access: AccessWriter?
    private let keeper: SessionKeeper
    /// Where ``ReloadRecord`` goes.
    private let runtimeDirectory = RuntimeDirectory.locate(environment: Process.environment)
    private var reloads = 0
    /// Why the last reload was refused; nil where it was not.
    private var refusal: String?
    /// What the service manager was told last.
    private var told = ""

    /// Prepares everything that can fail before the first caller comes.
    ///
    /// `observer` is told of logins besides the log; `stateDirectory` takes the place of the usual one.
    init(
        settings: Settings, path: String, observer: (any LoginObserver)? = nil, stateDirectory: String? = nil
    ) throws {
        OpenFiles.raiseLimit()
        // Before any thread is there: it changes the environment.
        (sockets, stored) = try ListenSockets.take(stored: SessionKeeper.name)
        self.settings = settings
        self.path = path
        output = try LogOutput(
            format: LogFormat(settings.log.format), level: Logger.Level(settings.log.level),
            environment: Process.environment)
        output.bootstrap()
        logger = Logger(label: "daemon")
        try DaemonSignals.block()
        logins = LoginLog(settings.audit)
        world = try World(settings: settings, stateDirectory: stateDirectory, observer: observer ?? logins)
        proxy = try ProxyServer(
            services: world.services, workers: WorkerCount.resolve(settings.workers),
            limits: WorkerLimits(callers: settings.limits.callers, exchanges: settings.limits.exchanges),
            logger: Logger(label: "exchange"))
        pulse = proxy.pulse
        status = DaemonStatus(world: world, readings: proxy.readings, pulse: pulse)
        watch = world.services.ledger.map { [status, world] ledger in
            CredentialWatch(
                sources: world.sources, ledger: ledger, roster: world.services.roster,
                alsoNamed: { world.latchedCredentials },
                alsoRead: { await world.fleetKeys?.refresh(from: world.sources) },
                replaceOutdated: { status.replaceOutdated($0) })
        }
        keeper = SessionKeeper(world: world, notifier: notifier, logger: logger)
    }

    /// Serves until SIGTERM or SIGINT, and returns when all is closed.
    func run() throws {
        let first = try plan(settings)
        serve(first, settings)
        keeper.takeUp(stored)
        try world.share(settings)
        try proxy.apply(first)
        status.accepts(true)
        tellOpenFiles(settings.limits)
        logger.notice("ready", metadata: ["listeners": "\(listenerList)", "version": "\(Version.text)"])
        record()
        tell(.ready)
        StartUpMemory.giveBack()
        status.keepSessions()
        try watch?.start()
        try keeper.begin()
        let watchdog = try Watchdog.expected(in: Process.environment, of: getpid())
        pulse.ping()
        // By the clock, not by how long nobody has wished anything: reloads in a row would keep the watchdog waiting.
        let period = watchdog?.beat ?? WorkerPulse.period
        var next = ContinuousClock.now + period
        var isRunning = true
        while isRunning {
            switch DaemonSignals.wait(atMost: max(.zero, next - .now)) {
            case .none: break
            case .reload: reload()
            case .terminate: isRunning = false
            }
            if isRunning, .now >= next {
                beat(watchdog)
                next = .now + period
            }
        }
        drain()
    }

    private func plan(_ settings: Settings) throws -> ProxyPlan {
        AdminAddresses.prepare(settings)
        let names = settings.systemdNames
        let inherited = try sockets.claim(names)
        let composition = ProxyComposition(
            settings: settings, material: world.material, inherited: inherited)
        return try composition.plan(
            admin: AdminService(sources: status.sources), accessLog: try AccessWriter(settings.accessLog))
    }

    /// From now on this is what is served.
    private func serve(_ plan: ProxyPlan, _ settings: Settings) {
        access = plan.accessLog as? AccessWriter
        let upstreams = plan.upstreams.flatMap(\.forEverybody)
        status.serves(upstreams)
        keeper.serves(upstreams, of: settings)
        world.services.fleet?.serves(FleetPlan(settings, upstreams))
    }

    private func tellOpenFiles(_ limits: LimitSettings) {
        guard let shortage = OpenFiles.shortage(for: limits) else { return }
        logger.warning("limits.callers cannot be held", metadata: ["reason": "\(shortage)"])
    }

    // MARK: Signals

    private func beat(_ watchdog: Watchdog?) {
        status.keepSessions()
        status.sample()
        proxy.tellRepetitions()
        logins.tellRepetitions(now: Process.wallClock())
        // What responses change of a session (its cookies, the count of a nonce) is no change of what is held.
        keeper.touch()
        let period = watchdog?.beat ?? WorkerPulse.period
        let isSteady = pulse.isSteady(period: period)
        pulse.ping()
        if !isSteady {
            logger.critical("a worker's loop does not turn; the watchdog is not told")
            told = "A worker's loop does not turn: whoever it serves waits, and the watchdog will end this process."
            notifier.send(.status(told))
        } else {
            if watchdog != nil { notifier.send(.watchdog) }
            if sentence != told { tell() }
        }
    }

    private func reload() {
        notifier.send(.reloading(monotonicMicroseconds: DaemonSignals.monotonicMicroseconds()))
        refusal = takeUpConfiguration()?.onOneLine
        if let refusal {
            logger.error("reload refused, the old configuration stays", metadata: ["reason": "\(refusal)"])
        } else {
            logger.notice("reloaded", metadata: ["listeners": "\(listenerList)"])
        }
        tell(.ready)
        reloads += 1
        record()
    }

    /// Puts the configuration as it is now in force, or nothing of it: then says why.
    private func takeUpConfiguration() -> String? {
        let (loaded, problems) = Settings.load(
            path: path, environment: Process.environment, handlers: OwnHandlers.names, kinds: OwnHandlers.kinds)
        for problem in problems { logger.warning("configuration", metadata: ["problem": "\(problem)"]) }
        guard let loaded else { return Self.reason(problems) }
        do {
            let plan = try plan(loaded)
            try proxy.apply(plan)
            serve(plan, loaded)
        } catch {
            return "\(error)"
        }
        proxy.setLimits(callers: loaded.limits.callers, exchanges: loaded.limits.exchanges)
        tellOpenFiles(loaded.limits)
        world.reload(loaded)
        watch?.startOver()
        status.keepSessions()
        for key in loaded.keysOfStart(otherThanIn: settings) {
            logger.warning("comes into force at the next start", metadata: ["key": "\(key)"])
        }
        settings = loaded
        output.level = Logger.Level(loaded.log.level)
        logins.isAuditing = loaded.audit == .journal
        return nil
    }

    /// The first error, and how many more there are.
    private static func reason(_ problems: [Problem]) -> String {
        let errors = problems.filter { $0.severity == .error }
        guard let first = errors.first else { return "the configuration cannot be read" }
        return errors.count == 1 ? "\(first)" : "\(first) (and \(errors.count - 1) more)"
    }

    private func record() {
        ReloadRecord(configuration: path, count: reloads, refusal: refusal).write(of: getpid(), in: runtimeDirectory)
    }

    /// Tells the service manager how things stand, and `states` with it.
    private func tell(_ states: NotifyState...) {
        told = sentence
        notifier.send(states + [.status(told)])
    }

    private func drain() {
        status.accepts(false)
        notifier.send(.stopping, .status("Finishing the exchanges under way."))
        logger.notice("draining")
        // Whoever waits for an answer would hold up the end.
        PasswordAgents.withdrawAll()
        let flag = DrainFlag()
        proxy.drain { flag.raise() }
        if !flag.wait(atMost: Self.drainTime) {
            logger.warning("exchanges were cut off by the end of the drain")
            proxy.turnAway()
            _ = flag.wait(atMost: Self.farewellTime)
        }
        leaveSessions()
        world.services.fleet?.end()
        proxy.stop()
        logins.tellRepetitions(now: Process.wallClock(), all: true)
        ReloadRecord.remove(of: getpid(), in: runtimeDirectory)
        logger.notice("stopped")
        access?.flush()
        output.flush()
    }

    /// Hands the sessions over, or ends them at their servers where that is configured and no other process will use them.
    private func leaveSessions() {
        let pending = status.pendingLogouts
        let isHandedOver = (pending.isEmpty || !ServiceJob.current.isStop) && keeper.finish()
        guard !isHandedOver, !pending.isEmpty else { return }
        keeper.forget()
        let all = Countdown(pending.count)
        world.services.roster.logOut(pending) { all.countDown() }
        if !all.wait(atMost: Self.logoutTime) { logger.warning("logouts were cut off by the end of their time") }
    }

    private var listenerList: String { settings.listeners.map { "\($0.address)" }.joined(separator: ", ") }

    /// How things stand, for whoever looks at `systemctl status`.
    private var sentence: String {
        if let refusal { return "Reload refused, the old configuration stays: \(refusal)" }
        let serving = "Serving \(settings.upstreams.map(\.name).joined(separator: ", ")) at \(listenerList)."
        return (status.trouble.map { "\(serving) \($0)" } ?? serving).onOneLine
    }
}

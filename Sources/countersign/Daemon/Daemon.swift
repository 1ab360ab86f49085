// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import Credentials
internal import Gateway
internal import Glibc
internal import Logging
internal import Settings
internal import Systemd

/// The daemon: starts the gateway, tells the service manager, and answers signals on the main thread until it is to
/// end.
final class Daemon {
    /// How long a drain may take before what is left is closed; the unit's TimeoutStopSec is longer.
    private static let drainTime = Duration.seconds(25)

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
    private let gateway: Gateway
    private let pulse: WorkerPulse
    private let status: DaemonStatus
    private let watch: CredentialWatch?
    private let logins: LoginLog
    private let keeper: SessionKeeper

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
        output = LogOutput(
            format: LogFormat(settings.log.format), level: Logger.Level(settings.log.level),
            environment: Process.environment)
        output.bootstrap()
        logger = Logger(label: "daemon")
        try DaemonSignals.block()
        logins = LoginLog(settings.audit)
        world = try World(settings: settings, stateDirectory: stateDirectory, observer: observer ?? logins)
        gateway = try Gateway(
            services: world.services, workers: WorkerCount.resolve(settings.workers),
            limits: WorkerLimits(callers: settings.limits.callers, exchanges: settings.limits.exchanges),
            logger: Logger(label: "exchange"))
        pulse = gateway.pulse
        status = DaemonStatus(world: world, readings: gateway.readings, pulse: pulse)
        watch = world.services.ledger.map { [status, world] ledger in
            CredentialWatch(sources: world.sources, ledger: ledger, roster: world.services.roster) {
                status.replaceOutdated($0)
            }
        }
        keeper = SessionKeeper(world: world, notifier: notifier, logger: logger)
    }

    /// Serves until SIGTERM or SIGINT, and returns when all is closed.
    func run() throws {
        let first = try plan(settings)
        keeper.takeUp(stored)
        try gateway.apply(first)
        status.accepts(true)
        tellOpenFiles(settings.limits)
        logger.notice("ready", metadata: ["listeners": "\(listenerList)", "version": "\(Version.text)"])
        notifier.send(.ready, .status(readySentence))
        StartUpMemory.giveBack()
        status.keepSessions()
        watch?.start()
        keeper.begin()
        let watchdog = try Watchdog.expected(in: Process.environment, of: getpid())
        pulse.ping()
        var isRunning = true
        while isRunning {
            switch DaemonSignals.wait(atMost: watchdog?.beat ?? WorkerPulse.period) {
            case .none: beat(watchdog)
            case .reload: reload()
            case .terminate: isRunning = false
            }
        }
        drain()
    }

    private func plan(_ settings: Settings) throws -> GatewayPlan {
        AdminAddresses.prepare(settings)
        let names = settings.systemdNames
        let inherited = try sockets.claim(names)
        let composition = GatewayComposition(
            settings: settings, clients: world.mobileFirstClients, inherited: inherited)
        let plan = try composition.plan(admin: AdminService(sources: status.sources))
        status.serves(plan.upstreams)
        keeper.serves(plan.upstreams, of: settings)
        return plan
    }

    private func tellOpenFiles(_ limits: LimitSettings) {
        guard let shortage = OpenFiles.shortage(for: limits) else { return }
        logger.warning("limits.callers cannot be held", metadata: ["reason": "\(shortage)"])
    }

    // MARK: Signals

    private func beat(_ watchdog: Watchdog?) {
        status.keepSessions()
        gateway.tellRepetitions()
        logins.tellRepetitions(now: Process.wallClock())
        // What responses change of a session (its cookies, the count of a nonce) is no change of what is held.
        keeper.touch()
        let period = watchdog?.beat ?? WorkerPulse.period
        let isSteady = pulse.isSteady(period: period)
        pulse.ping()
        if !isSteady {
            logger.critical("a worker's loop does not turn; the watchdog is not told")
        } else if watchdog != nil {
            notifier.send(.watchdog)
        }
    }

    private func reload() {
        notifier.send(.reloading(monotonicMicroseconds: DaemonSignals.monotonicMicroseconds()))
        let (loaded, problems) = Settings.load(path: path, environment: Process.environment)
        for problem in problems { logger.warning("configuration", metadata: ["problem": "\(problem)"]) }
        do {
            guard let loaded else { throw CompositionError("\(path) has errors") }
            try gateway.apply(try plan(loaded))
            gateway.setLimits(callers: loaded.limits.callers, exchanges: loaded.limits.exchanges)
            tellOpenFiles(loaded.limits)
            world.reload(loaded)
            watch?.startOver()
            status.keepSessions()
            settings = loaded
            output.level = Logger.Level(loaded.log.level)
            logins.isAuditing = loaded.audit == .journal
            logger.notice("reloaded", metadata: ["listeners": "\(listenerList)"])
            notifier.send(.ready, .status(readySentence))
        } catch {
            logger.error("reload refused, the old configuration stays", metadata: ["reason": "\(error)"])
            let reason = "\(error)".split(separator: "\n").first.map(String.init) ?? ""
            notifier.send(.ready, .status("Reload refused, the old configuration stays: \(reason)"))
        }
    }

    private func drain() {
        status.accepts(false)
        notifier.send(.stopping, .status("Finishing the exchanges under way."))
        logger.notice("draining")
        // Whoever waits for an answer would hold up the end.
        PasswordAgents.withdrawAll()
        let flag = DrainFlag()
        gateway.drain { flag.raise() }
        if !flag.wait(atMost: Self.drainTime) { logger.warning("exchanges were cut off by the end of the drain") }
        leaveSessions()
        gateway.stop()
        logins.tellRepetitions(now: Process.wallClock(), all: true)
        logger.notice("stopped")
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

    private var readySentence: String {
        "Serving \(settings.upstreams.map(\.name).joined(separator: ", ")) at \(listenerList)."
    }
}

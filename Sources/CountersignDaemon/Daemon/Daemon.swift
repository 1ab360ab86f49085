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
internal import SharedSessions
internal import System
internal import Systemd

/// The daemon: runs the proxy, notifies the service manager, and handles signals on the main thread.
final class Daemon {
    /// Timeout of a drain, shorter than TimeoutStopSec of the unit. Exchanges that are left are then turned away.
    private static let drainTimeout = Duration.seconds(25)

    /// Timeout of the replies to exchanges that are turned away.
    private static let closingTimeout = Duration.seconds(2)

    /// Timeout of the first look-up of callers' tokens. A caller is refused until its token is known.
    private static let tokenTimeout = Duration.seconds(5)

    /// Timeout of the first look-up of latched credentials. Until then their logins count as failing.
    private static let latchTimeout = Duration.seconds(3)

    /// Timeout of all logouts together.
    private static let logoutTimeout = Duration.seconds(5)

    /// Timeout of the last writes of the state.
    private static let stateTimeout = Duration.seconds(3)

    private let path: String
    private let output: LogOutput
    private let logger: Logger
    private let notifier = ServiceNotifier()
    private let sockets: ListenSockets
    /// Descriptors that the service manager stored for this process.
    private let stored: [Int32]
    private var settings: Settings
    private let context: DaemonContext
    private let proxy: ProxyServer
    private let pulse: WorkerPulse
    private let status: DaemonStatus
    private let watch: CredentialWatch?
    private let logins: LoginLog
    /// The access log in force, if there is one.
    private var access: AccessWriter?
    private let persister: SessionPersister
    /// Entry of this process in the state directory.
    private let entry: StateProcess?
    /// Directory of the ``ReloadRecord``.
    private let runtimeDirectory = RuntimeDirectory.locate(environment: Process.environment)
    private var stateRetries = StateRetries()
    private var reloads = 0
    /// The reason why the last reload was refused; `nil` if it succeeded.
    private var refusal: String?
    /// The status text that was last sent to the service manager.
    private var sentStatus = ""

    /// Prepares everything that can fail before the first caller is accepted.
    ///
    /// `observer` replaces the login log, and `stateDirectory` the usual directory.
    init(
        settings: Settings, path: String, observer: (any LoginObserver)? = nil, stateDirectory: String? = nil
    ) throws {
        OpenFileLimit.raise()
        // Before any thread is started, because it changes the environment.
        (sockets, stored) = try ListenSockets.take(stored: SessionPersister.name)
        self.settings = settings
        self.path = path
        output = try LogOutput(
            format: settings.log.format, level: settings.log.level,
            environment: Process.environment)
        output.bootstrap()
        logger = Logger(label: "daemon")
        try DaemonSignals.block()
        logins = LoginLog(settings.audit)
        context = try DaemonContext(
            settings: settings, stateDirectory: stateDirectory, observer: observer ?? logins,
            unwrittenLog: .ofDaemon { [output] in output.flush() })
        do throws(SystemError) {
            entry = try StateProcess(in: context.stateDirectory, socket: AdminAddresses.socket(of: settings))
        } catch {
            entry = nil
            logger.warning(
                "the state directory cannot be written; `countersign unlatch` may not find this process",
                metadata: ["reason": "\(error)"])
        }
        proxy = try ProxyServer(
            services: context.services, workers: WorkerCount.resolve(settings.workers),
            limits: WorkerLimits(callers: settings.limits.callers, exchanges: settings.limits.exchanges),
            logger: Logger(label: "exchange"))
        pulse = proxy.pulse
        status = DaemonStatus(
            context: context, readings: proxy.readings, pulse: pulse, configuration: path,
            stateDirectory: stateDirectory, outages: proxy.outages)
        watch = context.services.credentialVersions.map { [status, context] credentialVersions in
            CredentialWatch(
                sources: context.sources, credentialVersions: credentialVersions, roster: context.services.roster,
                otherNames: { context.latchedCredentials },
                refreshOthers: {
                    await context.sharingKeys?.refresh(from: context.sources)
                    await context.callerTokens.refresh()
                },
                replaceOutdated: { status.replaceOutdated($0) })
        }
        persister = SessionPersister(context: context, notifier: notifier, logger: logger)
    }

    /// Serves until SIGTERM or SIGINT, then drains, and returns when everything is closed.
    ///
    /// Calls `whenReady` once with the ports of the listeners, 0 for those without a port. `mayEnd` gets the number of
    /// each signal, and returns true if the daemon must drain. With it there are no reloads.
    func run(
        whenReady: (_ ports: [UInt16]) throws -> Void = { _ in }, mayEnd: ((Int32) -> Bool)? = nil
    ) throws {
        let first = try plan(settings, context.sources.present)
        publish(first, settings)
        persister.restore(stored)
        try context.share(settings)
        loadCallerTokens(settings)
        context.latchedValues.load(on: context.services.roster.loop, within: Self.latchTimeout)
        try proxy.apply(first)
        status.setAccepting(true)
        warnOfFileShortage(settings.limits)
        // Started before the daemon reports that it is ready: if their threads cannot be started, it ends.
        try watch?.start()
        try persister.start()
        logger.notice("ready", metadata: ["listeners": "\(listenerList)", "version": "\(Version.text)"])
        // Without reloads, no command looks for this process.
        if mayEnd == nil { writeReloadRecord() }
        notify(.ready)
        ProcessMemory.dropCodePages()
        status.maintainSessions()
        let watchdog = try Watchdog.expected(in: Process.environment, of: getpid())
        pulse.ping()
        // Measured by the clock, not from the last signal: consecutive reloads would delay the watchdog.
        let period = watchdog?.beat ?? WorkerPulse.period
        var next = ContinuousClock.now + period
        var isRunning = true
        do { try whenReady(ports) } catch {
            drain()
            throw error
        }
        while isRunning {
            switch DaemonSignals.wait(atMost: max(.zero, next - .now)) {
            case .none: break
            case .reload: if let mayEnd { isRunning = !mayEnd(SIGHUP) } else { reload() }
            case .terminate(let signal): isRunning = !(mayEnd?(signal) ?? true)
            }
            if isRunning, .now >= next {
                runPeriodicTasks(watchdog)
                next = .now + period
            }
        }
        drain()
    }

    private var ports: [UInt16] {
        proxy.descriptors.map { SocketAddress.local(of: $0)?.hostAndPort?.port ?? 0 }
    }

    /// Returns the plan of `settings`, whose logins ask the sources of `snapshot`.
    private func plan(_ settings: Settings, _ snapshot: CredentialSnapshot) throws -> ProxyPlan {
        AdminAddresses.makeDirectory(for: settings)
        let names = settings.systemdNames
        let inherited = try sockets.claim(names)
        let composition = ProxyComposition(
            settings: settings, material: context.material, sources: snapshot.sources, inherited: inherited,
            callerTokens: context.callerTokens.tokens)
        return try composition.plan(
            admin: AdminService(sources: status.sources), accessLog: try AccessWriter(settings.accessLog))
    }

    /// Passes the upstreams of `plan` to everything that reports, stores or shares their sessions.
    private func publish(_ plan: ProxyPlan, _ settings: Settings) {
        access = plan.accessLog as? AccessWriter
        let upstreams = plan.upstreams.flatMap(\.forEverybody)
        status.setUpstreams(upstreams, listeners: plan.listeners)
        persister.setUpstreams(upstreams, of: settings)
        context.sharing?.serve(SharingPlan(settings, upstreams))
        proxy.keepOutages(of: Set(plan.upstreams.map(\.name)))
        status.setListeners(settings.listeners.map { "\($0.address)" })
    }

    private func warnOfFileShortage(_ limits: LimitSettings) {
        guard let shortage = OpenFiles.shortage(for: limits) else { return }
        logger.warning("limits.callers cannot be reached", metadata: ["reason": "\(shortage)"])
    }

    /// Looks up the tokens of callers that are new in `settings`, and waits for them.
    private func loadCallerTokens(_ settings: Settings) {
        context.callerTokens.load(
            settings.callerCredentials, on: context.services.roster.loop, within: Self.tokenTimeout)
    }

    // MARK: Signals

    private func runPeriodicTasks(_ watchdog: Watchdog?) {
        status.maintainSessions()
        status.sample()
        proxy.logRepetitions()
        logins.logRepetitions(now: SystemClock.wallClock())
        let now = Int64(clamping: SystemClock.monotonicNanoseconds() / 1_000_000)
        context.unwrittenLog.update(context.unwrittenState)
        if stateRetries.isDue(hasUnwritten: context.hasUnwrittenState, now: now) { context.rewriteState() }
        context.callerTokens.refreshIfDue(on: context.services.roster.loop)
        context.latchedValues.refresh(on: context.services.roster.loop)
        // Responses change the contents of a session (cookies, a nonce count) without an event of the gate.
        persister.scheduleWrite()
        let period = watchdog?.beat ?? WorkerPulse.period
        let isSteady = pulse.isSteady(period: period)
        pulse.ping()
        if !isSteady {
            logger.critical("the event loop of a worker is stuck; the watchdog is not notified")
            sentStatus =
                "The event loop of a worker is stuck: its callers wait, and the watchdog will end this process."
            notifier.send(.status(sentStatus))
        } else {
            if watchdog != nil { notifier.send(.watchdog) }
            if statusText != sentStatus { notify() }
        }
    }

    private func reload() {
        notifier.send(.reloading(monotonicMicroseconds: SystemClock.monotonicNanoseconds() / 1000))
        refusal = applyConfiguration()?.onOneLine
        status.recordReload(refusal: refusal)
        if let refusal {
            logger.error("reload refused, the old configuration stays in force", metadata: ["reason": "\(refusal)"])
        } else {
            logger.notice("reloaded", metadata: ["listeners": "\(listenerList)"])
        }
        notify(.ready)
        reloads += 1
        writeReloadRecord()
    }

    /// Loads the configuration and puts all of it in force, or nothing. Returns the reason of a refusal.
    private func applyConfiguration() -> String? {
        let (loaded, problems) = Settings.load(
            path: path, environment: Process.environment, handlers: OwnHandlers.names, kinds: OwnHandlers.kinds)
        for problem in problems { logger.warning("configuration", metadata: ["problem": "\(problem)"]) }
        guard let loaded else { return Self.reason(problems) }
        // In force with the plan at once: a login asks the sources of its own configuration, whenever it looks them up.
        let snapshot = context.snapshot(of: loaded)
        do {
            let plan = try plan(loaded, snapshot)
            context.sharing?.prepare(SharingPlan(loaded, plan.upstreams.flatMap(\.forEverybody)))
            try proxy.apply(plan)
            publish(plan, loaded)
        } catch {
            return "\(error)"
        }
        proxy.setLimits(callers: loaded.limits.callers, exchanges: loaded.limits.exchanges)
        warnOfFileShortage(loaded.limits)
        context.reload(loaded, snapshot)
        // With the new sources.
        loadCallerTokens(loaded)
        watch?.forgetFiles()
        context.latchedValues.refresh(on: context.services.roster.loop)
        status.maintainSessions()
        for key in loaded.keysNeedingRestart(since: settings) {
            logger.warning("takes effect at the next start", metadata: ["key": "\(key)"])
        }
        settings = loaded
        output.level = loaded.log.level
        logins.isAuditing = loaded.audit == .journal
        return nil
    }

    /// Returns the first error and the number of further errors.
    private static func reason(_ problems: [Problem]) -> String {
        let errors = problems.filter { $0.severity == .error }
        // The one that names what was probably meant is the one to correct.
        guard let first = errors.first(where: { $0.message.contains("did you mean") }) ?? errors.first else {
            return "the configuration cannot be read"
        }
        return errors.count == 1 ? "\(first)" : "\(first) (and \(errors.count - 1) more)"
    }

    private func writeReloadRecord() {
        var record = ReloadRecord(
            configuration: ReloadRecord.path(ofConfiguration: path), count: reloads, refusal: refusal)
        record.socket = AdminAddresses.socket(of: settings)
        record.write(of: getpid(), in: runtimeDirectory)
    }

    /// Sends `states` and the status text to the service manager.
    private func notify(_ states: NotifyState...) {
        sentStatus = statusText
        notifier.send(states + [.status(sentStatus)])
    }

    private func drain() {
        status.setAccepting(false)
        notifier.send(.stopping, .status("Finishing the exchanges under way."))
        logger.notice("draining")
        // Logins that wait for a prompt would delay the end.
        PasswordAgents.withdrawAll()
        let drained = CountDownLatch()
        proxy.drain { drained.countDown() }
        if !drained.wait(within: Self.drainTimeout) {
            logger.warning("exchanges were cut off at the end of the drain")
            proxy.turnAway()
            _ = drained.wait(within: Self.closingTimeout)
        }
        handOverSessions()
        context.sharing?.end()
        proxy.stop()
        if context.hasUnwrittenState { context.rewriteState() }
        if !context.state.finish(within: Self.stateTimeout) {
            logger.warning("the state was not written before the end; check the disk of the state directory")
        }
        logins.logRepetitions(now: SystemClock.wallClock(), all: true)
        ReloadRecord.remove(of: getpid(), in: runtimeDirectory)
        logger.notice("stopped")
        access?.flush()
        output.flush()
    }

    /// Hands the sessions over to the next process, or logs out.
    ///
    /// A logout must be configured, and takes place only if no other process will use the session.
    private func handOverSessions() {
        let pending = status.pendingLogouts
        let isHandedOver = (pending.isEmpty || !ServiceJob.current.isStop) && persister.finish()
        guard !isHandedOver, !pending.isEmpty else { return }
        persister.forget()
        let all = CountDownLatch(pending.count)
        context.services.roster.logOut(pending) { all.countDown() }
        if !all.wait(within: Self.logoutTimeout) { logger.warning("logouts were cut off by their timeout") }
    }

    private var listenerList: String { settings.listeners.map { "\($0.address)" }.joined(separator: ", ") }

    /// The status text that `systemctl status` shows.
    private var statusText: String {
        if let refusal { return "Reload refused, the old configuration stays in force: \(refusal)" }
        let serving = "Serving \(settings.upstreams.map(\.name).joined(separator: ", ")) at \(listenerList)."
        return (status.problem.map { "\(serving) \($0)" } ?? serving).onOneLine
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// Event loop of one thread: descriptors, timers, and jobs from other threads.
///
/// `run` turns the loop on the calling thread. Members under "On the loop's thread" may be used only there (or before
/// `run`, while no other thread has the loop), the others on any thread. The loop is an executor for actors and a
/// preferred executor for tasks, so that `async` code can share state with handlers without a lock.
///
/// A turn waits for events, delivers them, fires due timers, runs jobs and calls the hooks. `now` is read once, after
/// the wait. No call allocates per event once the tables have grown.
public final class EventLoop: @unchecked Sendable {
    // Safe to share: `mailbox`, `thread`, `stopping` and `turned` are synchronized, and all other state is used on the
    // loop's thread only, which every member asserts.
    private let mailbox: Mailbox
    private let thread = Atomic<UInt>(0)
    private let stopping = Atomic<Bool>(false)
    private let turned = Atomic<UInt64>(0)

    private var poller: Poller
    private var timers = TimerHeap()
    private var queue = JobQueue()
    private var hooks: [any WaitHook] = []
    /// Index of the hook that is being called; -1 between two rounds.
    private var hookIndex = -1
    /// Manual clock, or nil to use the system's time.
    private let manualClock: ManualLoopClock?
    @usableFromInline var time: LoopInstant
    /// End of the current turn by a manual clock, which advances only when the turn's own thread advances it.
    private var turnEnd = LoopInstant(nanoseconds: 0)
    /// Number of events of the last wait, and number of events ever delivered.
    private var lastCount = 0
    private var deliveries: UInt64 = 0
    private var recordedDeliveries: UInt64 = 0
    /// Observers called when nothing is left to do, with a manual clock only.
    private var idleObservers: [@Sendable () -> Void] = []
    /// Load of the loop; use on the loop's thread.
    public private(set) var activity = LoopActivity()

    /// Maximum jobs per turn, before descriptors are served again.
    private static let jobsPerTurn = 256
    /// Maximum rounds of jobs and hooks per turn.
    private static let roundsPerTurn = 4

    /// Creates a loop on the system's time or a manual clock.
    ///
    /// Throws if the kernel has no epoll instance or eventfd left.
    public init(clock: ManualLoopClock? = nil) throws(EventLoopError) {
        let mailbox = try Mailbox()
        poller = try Poller(mailbox: mailbox.eventfd)
        self.mailbox = mailbox
        manualClock = clock
        time = clock?.now ?? .read()
        clock?.attach(self)
    }

    // MARK: From any thread

    /// Turns the loop on the calling thread until `stop` is called; a loop runs once.
    ///
    /// Jobs enqueued before the stop are still run, later ones are not. Then the loop releases all handlers and hooks.
    public func run() {
        adoptThread()
        // Time before this point is not work of the loop.
        time = turnTime
        while !stopping.load(ordering: .acquiring) { turn() }
        manualClock?.detach(self)
        mailbox.drain(into: &queue)
        runJobs(atMost: queue.count)
        notifyIdleObservers()
        releaseHandlers()
        thread.store(0, ordering: .releasing)
    }

    /// Ends `run` after the current turn.
    public func stop() {
        stopping.store(true, ordering: .releasing)
        mailbox.wake()
    }

    /// True if the caller is on the loop's thread.
    public var isCurrent: Bool {
        thread.load(ordering: .relaxed) == UInt(pthread_self())
    }

    /// Runs `job` on the loop's thread, soon but never within this call.
    public func execute(_ job: @escaping @Sendable () -> Void) {
        submit(.call(job))
    }

    /// Makes the loop take a turn, so that `lastTurn` advances if the loop is alive.
    public func ping() {
        mailbox.wake()
    }

    /// Time of the loop's last return from its wait, for a watchdog: `ping`, wait, then read.
    public var lastTurn: LoopInstant {
        LoopInstant(nanoseconds: turned.load(ordering: .relaxed))
    }

    /// Current time of the loop's clock. On the loop's thread prefer `now` and `readNow`.
    public var clockNow: LoopInstant { manualClock?.now ?? .read() }

    // MARK: On the loop's thread

    /// Time of the current turn.
    @inlinable
    public var now: LoopInstant {
        assert(isOnLoop, "not on the loop's thread")
        return time
    }

    /// Returns the current time, which is later than `now` by the duration of this turn.
    public func readNow() -> LoopInstant { manualClock == nil ? .read() : turnEnd }

    /// Time by a clock that includes the machine's suspend time; its zero differs from that of `now`.
    public var continuousNow: LoopInstant { manualClock == nil ? .readContinuous() : time }

    /// System time of this turn, for hooks, because libcurl uses this clock.
    public var systemNow: LoopInstant { manualClock == nil ? time : .read() }

    /// Reports events of `fd` to `handler`, or changes the interest.
    ///
    /// The loop retains `handler` until `forget` or `unwatch`. An empty interest is like `suspend`. If the kernel
    /// refuses, `handler` receives `.error`.
    public func watch(_ fd: Int32, for interest: Interest, handler: any ReadinessHandler) {
        assertOnLoop()
        let former = poller.watch(fd, for: interest, handler: handler)
        withExtendedLifetime(former) {}
    }

    /// Suspends delivery while the owner keeps `fd` open.
    ///
    /// The kernel is only notified if something happens, so this costs no system call unless the interest included
    /// writing.
    public func suspend(_ fd: Int32) {
        assertOnLoop()
        poller.suspend(fd)
    }

    /// Stops watching `fd`, which stays open.
    ///
    /// Required for a descriptor that others hold too (a listener kept by systemd, a duplicate), because closing would
    /// not end the kernel's registration.
    public func unwatch(_ fd: Int32) {
        assertOnLoop()
        let former = poller.unwatch(fd)
        withExtendedLifetime(former) {}
    }

    /// Drops the record of `fd`, which its owner is closing; costs no system call.
    public func forget(_ fd: Int32) {
        assertOnLoop()
        let former = poller.forget(fd)
        withExtendedLifetime(former) {}
    }

    /// Calls `handler` once at `deadline`, with `tag` to identify the timer.
    ///
    /// The loop retains `handler` until then or until `cancel`.
    public func schedule(at deadline: LoopInstant, _ handler: any TimerHandler, tag: UInt64 = 0) -> TimerToken {
        assertOnLoop()
        return timers.schedule(at: deadline, handler, tag: tag)
    }

    /// Cancels a timer, and returns true if the timer was still pending; a stale token is ignored.
    @discardableResult
    public func cancel(_ token: TimerToken) -> Bool {
        assertOnLoop()
        let handler = timers.cancel(token)
        return withExtendedLifetime(handler) { handler != nil }
    }

    /// Calls `hook` before every wait from now on; the loop retains the hook until `remove`.
    public func add(_ hook: any WaitHook) {
        assertOnLoop()
        hooks.append(hook)
    }

    /// Stops calling `hook`, which may be the one that is being called.
    public func remove(_ hook: any WaitHook) {
        assertOnLoop()
        guard let index = hooks.firstIndex(where: { $0 === hook }) else { return }
        let former = hooks.remove(at: index)
        // The later hooks have moved up, and none of them is left out of this round.
        if index <= hookIndex { hookIndex -= 1 }
        withExtendedLifetime(former) {}
    }

    /// Number of `epoll_ctl` calls; a keep-alive request must not raise it.
    public var registrations: Int {
        assertOnLoop()
        return poller.registrations
    }

    // MARK: Within the module

    /// Binds the loop to the calling thread.
    func adoptThread() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
    }

    /// True if no thread turns the loop.
    var isAtRest: Bool { thread.load(ordering: .acquiring) == 0 }

    func submit(_ job: sending LoopJob) {
        manualClock?.recordWork()
        if isCurrent {
            queue.append(job)
        } else {
            mailbox.enqueue(job)
            // Again, for observers that wait until the job is in the mailbox.
            manualClock?.recordWork()
        }
    }

    // MARK: A turn

    /// Takes one turn on the calling thread without waiting, for tests.
    public func turnOnce() {
        adoptThread()
        _ = prepareToWait()
        deliver(poller.wait(milliseconds: 0))
    }

    private func turn() {
        let timeout = prepareToWait()
        deliver(poller.wait(milliseconds: timeout))
    }

    private func deliver(_ count: Int) {
        lastCount = count
        time = turnTime
        turnEnd = time
        turned.store(time.nanoseconds, ordering: .relaxed)
        for index in 0..<count {
            // Taken before delivery, because the handler calls back into the loop.
            if let delivery = poller.take(index) {
                deliveries &+= 1
                delivery.handler.ready(delivery.descriptor, delivery.events)
            } else if poller.isMailbox(index) {
                mailbox.drain(into: &queue)
            }
        }
        if poller.hasRefused { deliverRefused() }
        if timers.earliest <= time { fireTimers() }
    }

    private func deliverRefused() {
        while let delivery = poller.takeRefused() { delivery.handler.ready(delivery.descriptor, delivery.events) }
    }

    /// Time of the turn that begins; a manual clock never skips a timer.
    private var turnTime: LoopInstant {
        guard let manualClock else { return .read() }
        return max(time, min(manualClock.now, timers.earliest))
    }

    /// Fires due timers, at most as many as exist now: a handler may schedule the present moment again and again.
    private func fireTimers() {
        for _ in 0..<timers.count {
            guard let due = timers.popDue(time) else { return }
            due.handler.timerFired(tag: due.tag)
        }
    }

    /// Runs jobs and hooks until they create no more work, and returns the maximum wait.
    private func prepareToWait() -> Int32 {
        let hookTime = systemNow
        var deadline = LoopInstant.never
        var isQuiet = false
        var round = 0
        while !isQuiet, round < Self.roundsPerTurn {
            if !queue.isEmpty { runJobs(atMost: Self.jobsPerTurn / Self.roundsPerTurn) }
            deadline = .never
            isQuiet = true
            hookIndex = 0
            // Loops by index, because a hook may add or remove hooks.
            while hookIndex < hooks.count {
                let advice = hooks[hookIndex].beforeWait(now: hookTime)
                if advice.didWork { isQuiet = false }
                deadline = min(deadline, advice.deadline)
                hookIndex += 1
            }
            hookIndex = -1
            if !queue.isEmpty { isQuiet = false }
            round += 1
        }
        let now = readNow()
        activity.turned(from: time, to: now)
        guard isQuiet, !poller.hasRefused, !stopping.load(ordering: .relaxed) else { return 0 }
        if let manualClock { return manualWait(by: manualClock, hooks: deadline) }
        deadline = min(deadline, timers.earliest)
        guard deadline != .never else { return -1 }
        return Int32(clamping: now.milliseconds(until: deadline))
    }

    /// Returns the maximum wait with a manual clock: until the clock is advanced, or until a hook's deadline.
    private func manualWait(by clock: ManualLoopClock, hooks deadline: LoopInstant) -> Int32 {
        if deliveries != recordedDeliveries { clock.recordWork() }
        recordedDeliveries = deliveries
        let left = deadline == .never ? -1 : Int32(clamping: LoopInstant.read().milliseconds(until: deadline))
        guard clock.now <= time, timers.earliest > time, left != 0 else { return 0 }
        if !idleObservers.isEmpty {
            // More events may have followed the last ones.
            guard lastCount == 0 else { return 0 }
            notifyIdleObservers()
            guard queue.isEmpty else { return 0 }
        }
        clock.onProgress()
        return left
    }

    /// Accounts for an advanced clock; on the loop's thread, the current turn takes that time.
    func clockAdvanced(to now: LoopInstant) {
        if isCurrent { turnEnd = now } else { ping() }
    }

    /// Calls `observer` once there is no job, no due timer and no event; callable on any thread, and not counted as
    /// work.
    func whenIdle(_ observer: @escaping @Sendable () -> Void) {
        mailbox.enqueue(.call { self.idleObservers.append(observer) })
    }

    private func notifyIdleObservers() {
        let observers = idleObservers
        idleObservers = []
        for observer in observers { observer() }
    }

    /// Releases handlers, timers and hooks, which usually retain the loop.
    private func releaseHandlers() {
        let handlers = poller.unwatchAll()
        var timers = TimerHeap()
        swap(&timers, &self.timers)
        var hooks: [any WaitHook] = []
        swap(&hooks, &self.hooks)
        withExtendedLifetime((handlers, hooks)) {}
    }

    private func runJobs(atMost limit: Int) {
        var left = limit
        while left > 0, let job = queue.popFirst() {
            left -= 1
            switch job {
            case .none: break
            case .call(let function): function()
            case .task(let job): runPiece(job)
            }
        }
    }

    /// Handlers rely on this check in debug builds only; `LoopBound` and the executor always check.
    private func assertOnLoop() { assert(isOnLoop, "not on the loop's thread") }

    /// True on the loop's thread, and while no thread turns the loop.
    @usableFromInline var isOnLoop: Bool { isCurrent || isAtRest }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// One thread's loop: descriptors, timers, and jobs from other threads.
///
/// `run` turns it on the thread that calls it. Members under "On the loop's thread" may be used there only (or before
/// `run`, while nobody else knows the loop); the others from any thread. It is an executor for actors and a preferred
/// executor for tasks, so that `async` code can share state with handlers without a lock.
///
/// A turn is: wait for events, deliver them, fire the timers that are due, run jobs, call the hooks. `now` is read
/// once after the wait. No call here allocates per event once the tables have grown.
public final class EventLoop: @unchecked Sendable {
    // Safe to share: `mailbox`, `thread`, `stopping` and `turned` synchronise by themselves, all other state is
    // touched on the loop's thread only, which every member asserts.
    private let mailbox: Mailbox
    private let thread = Atomic<UInt>(0)
    private let stopping = Atomic<Bool>(false)
    private let turned = Atomic<UInt64>(0)

    private var poller: Poller
    private var timers = TimerHeap()
    private var queue = JobQueue()
    private var hooks: [any WaitHook] = []
    /// The clock that is turned by hand; `nil`: the time is the system's.
    private let manualClock: ManualLoopClock?
    @usableFromInline var time: LoopInstant
    /// How far the present turn has come, where the time is turned by hand: it takes none but what its own thread advances.
    private var turnEnd = LoopInstant(nanoseconds: 0)
    /// How many events the last wait brought, and how many were ever delivered.
    private var lastCount = 0
    private var deliveries: UInt64 = 0
    private var notedDeliveries: UInt64 = 0
    /// Told when nothing is left to do. Only with a clock that is turned by hand.
    private var idleObservers: [@Sendable () -> Void] = []
    /// How busy it is. On the loop's thread.
    public private(set) var activity = LoopActivity()

    /// Jobs run per turn at most; then descriptors get their turn.
    private static let jobsPerTurn = 256
    /// Rounds of jobs and hooks per turn at most.
    private static let roundsPerTurn = 4

    /// A loop at rest; throws if the kernel has no epoll instance or eventfd left to give. Its time is the system's, or that of
    /// a clock that is turned by hand.
    public init(clock: ManualLoopClock? = nil) throws(EventLoopError) {
        let mailbox = try Mailbox()
        poller = try Poller(mailbox: mailbox.eventfd)
        self.mailbox = mailbox
        manualClock = clock
        time = clock?.now ?? .read()
        clock?.attach(self)
    }

    // MARK: From any thread

    /// Turns the loop on the calling thread until `stop` is called. A loop runs once. Jobs that were there when it
    /// stopped are still run, what comes later is not; then the loop lets go of all handlers and hooks.
    public func run() {
        adoptThread()
        // What comes before is not its work.
        time = turnTime
        while !stopping.load(ordering: .acquiring) { turn() }
        manualClock?.detach(self)
        mailbox.empty(into: &queue)
        runJobs(atMost: queue.count)
        tellIdle()
        releaseHandlers()
        thread.store(0, ordering: .releasing)
    }

    /// Ends `run` after the present turn.
    public func stop() {
        stopping.store(true, ordering: .releasing)
        mailbox.wake()
    }

    /// True if the caller is on the loop's thread.
    public var isCurrent: Bool {
        thread.load(ordering: .relaxed) == UInt(pthread_self())
    }

    /// Runs `job` on the loop's thread, soon and never within this call.
    public func execute(_ job: @escaping @Sendable () -> Void) {
        accept(.call(job))
    }

    /// Has the loop make a turn, so that `lastTurn` advances if it is alive.
    public func ping() {
        mailbox.wake()
    }

    /// When the loop last came out of its wait. For a watchdog: `ping`, wait a while, look here.
    public var lastTurn: LoopInstant {
        LoopInstant(nanoseconds: turned.load(ordering: .relaxed))
    }

    /// Reads the loop's clock. On the loop's thread prefer `now` and `readNow`.
    public var clockNow: LoopInstant { manualClock?.now ?? .read() }

    // MARK: On the loop's thread

    /// The time as of this turn.
    @inlinable
    public var now: LoopInstant {
        assert(isOnLoop, "not on the loop's thread")
        return time
    }

    /// Reads the clock, which has moved on from `now` as far as this turn has taken.
    public func readNow() -> LoopInstant { manualClock == nil ? .read() : turnEnd }

    /// The time by a clock that also counts how long the machine slept, and has another zero than `now`.
    public var continuousNow: LoopInstant { manualClock == nil ? .readContinuous() : time }

    /// The system's time as of this turn: hooks go by it, since libcurl does.
    public var systemNow: LoopInstant { manualClock == nil ? time : .read() }

    /// Tells `handler` of events at `fd`, or changes what it is told of. The loop keeps `handler` until `forget` or
    /// `unwatch`. An empty interest is like `relax`. Should the kernel refuse, `handler` is told `.error`.
    public func watch(_ fd: Int32, for interest: Interest, handler: any ReadinessHandler) {
        assertOnLoop()
        let former = poller.watch(fd, for: interest, handler: handler)
        withExtendedLifetime(former) {}
    }

    /// The owner has no interest at the moment but keeps `fd` open: nothing is delivered, and the kernel is told only
    /// if something happens. Costs no system call unless there was interest in writing.
    public func relax(_ fd: Int32) {
        assertOnLoop()
        poller.relax(fd)
    }

    /// Ends watching `fd`, which stays open. This is the way for a descriptor that others hold too (a listener that
    /// systemd keeps, a duplicate): closing it would not end the kernel's registration.
    public func unwatch(_ fd: Int32) {
        assertOnLoop()
        let former = poller.unwatch(fd)
        withExtendedLifetime(former) {}
    }

    /// The owner is closing `fd`, which ends the kernel's registration: drops the record of it. Costs no system call.
    public func forget(_ fd: Int32) {
        assertOnLoop()
        let former = poller.forget(fd)
        withExtendedLifetime(former) {}
    }

    /// Tells `handler` once that `deadline` has come, with `tag` so that it knows which one. The loop keeps `handler`
    /// until then or until `cancel`.
    public func schedule(at deadline: LoopInstant, _ handler: any TimerHandler, tag: UInt64 = 0) -> TimerToken {
        assertOnLoop()
        return timers.schedule(at: deadline, handler, tag: tag)
    }

    /// Takes back what `schedule` promised. Returns whether it was still to come; a stale token does no harm.
    @discardableResult
    public func cancel(_ token: TimerToken) -> Bool {
        assertOnLoop()
        let handler = timers.cancel(token)
        return withExtendedLifetime(handler) { handler != nil }
    }

    /// Calls `hook` before every wait from now on. The loop keeps it until `remove`.
    public func add(_ hook: any WaitHook) {
        assertOnLoop()
        hooks.append(hook)
    }

    /// Calls `hook` no longer.
    public func remove(_ hook: any WaitHook) {
        assertOnLoop()
        hooks.removeAll { $0 === hook }
    }

    /// How often the loop has called `epoll_ctl`: a keep-alive request must not raise it.
    public var registrations: Int {
        assertOnLoop()
        return poller.registrations
    }

    // MARK: Within the module

    /// Makes the calling thread the loop's.
    func adoptThread() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
    }

    /// True if no thread turns the loop.
    var isAtRest: Bool { thread.load(ordering: .acquiring) == 0 }

    func accept(_ job: sending LoopJob) {
        manualClock?.noteWork()
        if isCurrent {
            queue.append(job)
        } else {
            mailbox.put(job)
            // Again, for who waits until it is there.
            manualClock?.noteWork()
        }
    }

    // MARK: A turn

    /// One turn on the calling thread, without a wait: for tests that turn a loop by hand instead of running it.
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
            // Taken apart from its delivery: the handler calls back into the loop.
            if let delivery = poller.take(index) {
                deliveries &+= 1
                delivery.handler.ready(delivery.descriptor, delivery.events)
            } else if poller.isMailbox(index) {
                mailbox.empty(into: &queue)
            }
        }
        if poller.hasRefused { deliverRefused() }
        if timers.earliest <= time { fireTimers() }
    }

    private func deliverRefused() {
        while let delivery = poller.takeRefused() { delivery.handler.ready(delivery.descriptor, delivery.events) }
    }

    /// The time of the turn that begins: one that is turned by hand passes no timer by.
    private var turnTime: LoopInstant {
        guard let manualClock else { return .read() }
        return max(time, min(manualClock.now, timers.earliest))
    }

    /// Not more than there are now: a handler may schedule the present moment again and again.
    private func fireTimers() {
        for _ in 0..<timers.count {
            guard let due = timers.popDue(time) else { return }
            due.handler.timerFired(tag: due.tag)
        }
    }

    /// Runs jobs and hooks until they have made no more work for each other, and says how long the wait may be.
    private func prepareToWait() -> Int32 {
        let hookTime = systemNow
        var deadline = LoopInstant.never
        var isQuiet = false
        var round = 0
        while !isQuiet, round < Self.roundsPerTurn {
            if !queue.isEmpty { runJobs(atMost: Self.jobsPerTurn / Self.roundsPerTurn) }
            deadline = .never
            isQuiet = true
            var index = 0
            // By index: a hook may add or remove one.
            while index < hooks.count {
                let advice = hooks[index].beforeWait(now: hookTime)
                if advice.didWork { isQuiet = false }
                deadline = min(deadline, advice.deadline)
                index += 1
            }
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

    /// How long the wait may be where the time is turned by hand: until somebody does, and for hooks until their moment.
    private func manualWait(by clock: ManualLoopClock, hooks deadline: LoopInstant) -> Int32 {
        if deliveries != notedDeliveries { clock.noteWork() }
        notedDeliveries = deliveries
        let left = deadline == .never ? -1 : Int32(clamping: LoopInstant.read().milliseconds(until: deadline))
        guard clock.now <= time, timers.earliest > time, left != 0 else { return 0 }
        if !idleObservers.isEmpty {
            // What came in with the last events may have been followed by more.
            guard lastCount == 0 else { return 0 }
            tellIdle()
            guard queue.isEmpty else { return 0 }
        }
        clock.onProgress()
        return left
    }

    /// The clock was advanced. On the loop's thread that is time that the present turn takes.
    func clockAdvanced(to now: LoopInstant) {
        if isCurrent { turnEnd = now } else { ping() }
    }

    /// Calls `observer` once nothing is left to do: no job, no due timer, no event. From any thread; it counts as no work.
    func whenIdle(_ observer: @escaping @Sendable () -> Void) {
        mailbox.put(.call { self.idleObservers.append(observer) })
    }

    private func tellIdle() {
        let observers = idleObservers
        idleObservers = []
        for observer in observers { observer() }
    }

    /// Handlers usually hold the loop that holds them.
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

    /// Handlers trust this where it is checked only in debug builds; `LoopBound` and the executor always check.
    private func assertOnLoop() { assert(isOnLoop, "not on the loop's thread") }

    /// True on the loop's thread, and while no thread turns the loop.
    @usableFromInline var isOnLoop: Bool { isCurrent || isAtRest }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import EventLoop
internal import Synchronization

/// Drives the lease machines of all shared sessions, on one worker's loop.
final class LeaseCoordinator {
    /// The answer to a request for a session.
    enum Decision: Sendable {
        /// Another node's login failed.
        case failure([UInt8])
        /// Another node renews the session.
        case leftToOther
        /// It is this node's turn: log in, then report the end.
        case logIn
        /// Another node's session.
        case session([UInt8])
    }

    /// The tasks that the coordinator gives to its owner.
    struct Callbacks {
        /// Adopts a session that no login waits for.
        var adoptSession: (SessionKey, SharingPlan.SharedName, [UInt8]) -> Void
        /// Drops a session that another node has ended for all.
        var dropSession: (SessionKey) -> Void
        /// Offers the held session, if any: the session store may have lost it.
        var offerSession: (SessionKey, SharingPlan.SharedName) -> Void
        /// Opens the latches of these challenges, which another node has opened.
        var openLatches: (Set<String>) -> Void
        /// Changes the statistics.
        var updateStatistics: (@Sendable (inout SharingStatistics) -> Void) -> Void
    }

    /// The machine of one session, with its timers.
    private final class LeaseEntry {
        let key: SessionKey
        let name: SharingPlan.SharedName
        let timer: LazyTimer
        /// Delay before the held session is offered.
        let offerTimer: LazyTimer
        var machine: LeaseMachine
        /// Waiter for the decision, if a session is requested.
        var decide: ((Decision) -> Void)?
        /// Another node's session until the gate has taken it, or a login has. It may be usable only once a credential has changed
        /// here as well.
        var untakenSession: [UInt8]?

        init(_ key: SessionKey, _ name: SharingPlan.SharedName, _ machine: LeaseMachine, _ loop: EventLoop) {
            self.key = key
            self.name = name
            self.machine = machine
            timer = LazyTimer(loop: loop)
            offerTimer = LazyTimer(loop: loop)
        }
    }

    /// Upstreams choose scopes, so the number of entries is bounded. Beyond it, a node establishes its own sessions.
    private static let maxEntries = 4096

    private let loop: EventLoop
    private let store: any SessionStore
    private let gate: SharedAttemptGate
    private let times: LeaseTimes
    private let callbacks: Callbacks
    private var entries: [String: LeaseEntry] = [:]
    private let random: @Sendable () -> Double

    init(
        loop: EventLoop, store: any SessionStore, gate: SharedAttemptGate, times: LeaseTimes,
        random: @escaping @Sendable () -> Double, callbacks: Callbacks
    ) {
        self.loop = loop
        self.random = random
        self.store = store
        self.gate = gate
        self.times = times
        self.callbacks = callbacks
    }

    /// Connects to the session store.
    func start() {
        // Weakly, here and below: a reply may come after `stop`.
        store.onEvent = { [weak self] in self?.received(event: $0) }
        store.connect()
    }

    /// Disconnects and forgets all entries.
    func stop() {
        for entry in entries.values {
            entry.timer.cancel()
            entry.offerTimer.cancel()
        }
        entries = [:]
        store.close()
        store.onEvent = nil
    }

    /// Subscribes to sessions, so that another node's session is here before a request needs it.
    func subscribe(to sessions: [(SessionKey, SharingPlan.SharedName)]) {
        for (key, name) in sessions { _ = entry(of: key, as: name) }
    }

    /// Requests a session later than the present one; `decide` is called once.
    func requestSession(
        _ key: SessionKey, _ name: SharingPlan.SharedName, isRenewal: Bool, _ decide: @escaping (Decision) -> Void
    ) {
        guard let entry = entry(of: key, as: name), entry.decide == nil else { return decide(.logIn) }
        if let session = entry.untakenSession {
            entry.untakenSession = nil
            return decide(.session(session))
        }
        entry.decide = decide
        let token = LeaseToken(Self.randomText())
        handle(.sessionRequested(after: entry.machine.generation, isRenewal: isRenewal, token: token), entry)
    }

    /// Reports the end of a login that was this node's turn.
    func reportLogin(_ event: LeaseMachine.Event, as name: SharingPlan.SharedName) {
        guard let entry = entries[name.text], entry.machine.isLoggingIn else { return }
        if case .loginFailed(let bytes, let pause, let longestPause, _) = event {
            let latches = gate.read { $0.shared.unreportedLatches }
            return handle(
                .loginFailed(bytes, pause: pause, longestPause: longestPause, latches: latches), entry)
        }
        handle(event, entry)
    }

    /// Offers a held session to the session store, unless the store has one as late.
    func offerSession(_ session: [UInt8], lifetime: Duration, as name: SharingPlan.SharedName) {
        guard let entry = entries[name.text], !entry.machine.hasRequest, !entry.machine.hasPendingReports else {
            return
        }
        let present = entry.machine.generation
        let offer = StoreRequest.offer(after: max(present, 1) - 1, session: session, lifetime: lifetime)
        store.send(offer, for: name.text) { [weak self] in
            switch $0 {
            case .done(let generation), .session(let generation, _):
                if generation > present { self?.handle(.sessionChanged(generation: generation), entry) }
            case .failed, .granted, .nothing, .stale, .wait, nil: break
            }
        }
    }

    /// Notes that the gate has taken another node's session, so that no login will.
    func tookSession(_ bytes: [UInt8], as name: SharingPlan.SharedName) {
        guard let entry = entries[name.text], entry.untakenSession == bytes else { return }
        entry.untakenSession = nil
    }

    /// Ends sessions on all nodes.
    func dropSessions(_ names: [SharingPlan.SharedName]) {
        for name in names {
            guard let entry = entries[name.text] else { continue }
            entry.untakenSession = nil
            handle(.failuresForgotten, entry)
            store.send(.drop(generation: entry.machine.generation), for: name.text) { _ in }
        }
    }

    /// Forgets the failures of other nodes' logins.
    func forgetFailures() {
        for entry in entries.values { handle(.failuresForgotten, entry) }
    }

    /// Opens the shared latches of a challenge, and ends all pauses after failures.
    func openLatches(of challenge: String) {
        forgetFailures()
        // No session is of that generation: only failures are dropped.
        for name in entries.keys { store.send(.drop(generation: 0), for: name) { _ in } }
        store.openLatches(of: challenge) { _ in }
    }

    /// Reports latches and one-time codes of this node that the session store has not confirmed.
    func reportAttempts() {
        guard store.isReachable else { return }
        let (latches, codes) = gate.read { ($0.shared.unreportedLatches, $0.shared.unreportedCodes) }
        if !latches.isEmpty {
            store.closeLatches(latches) { [gate] in
                if $0 { gate.change { $0.shared.confirmLatches(latches) } }
            }
        }
        if !codes.ends.isEmpty {
            store.markUsed(codes) { [gate] in if $0 { gate.change { $0.shared.confirmCodes(codes) } } }
        }
    }

    // MARK: The session store

    private func received(event: StoreEvent) {
        switch event {
        case .connected:
            callbacks.updateStatistics { $0.isStoreReachable = true }
            readAttempts { _ in }
            for entry in entries.values {
                handle(.storeConnected, entry)
                // Randomly, since all nodes do so.
                entry.offerTimer.arm(at: loop.now + LoopDelay(times.spread * random()))
            }
        case .disconnected(let reason):
            callbacks.updateStatistics {
                $0.isStoreReachable = false
                $0.reason = reason
            }
            for entry in entries.values { handle(.storeDisconnected, entry) }
        case .sessionChanged(let name, let generation):
            if let entry = entries[name] { handle(.sessionChanged(generation: generation), entry) }
        case .attemptsChanged(let count):
            if count != attemptCount { readAttempts { _ in } }
        }
    }

    private var attemptCount: UInt64 { gate.read { $0.shared.count } }

    private func readAttempts(_ completion: @escaping (Bool) -> Void) {
        store.readAttempts { [weak self] answer in
            guard let self, let answer else { return completion(false) }
            let opened = gate.merge(answer)
            if !opened.isEmpty { callbacks.openLatches(opened) }
            reportAttempts()
            completion(true)
        }
    }

    // MARK: The machines

    private func entry(of key: SessionKey, as name: SharingPlan.SharedName) -> LeaseEntry? {
        if let entry = entries[name.text] { return entry }
        guard entries.count < Self.maxEntries else { return nil }
        let machine = LeaseMachine(times: times, isStoreReachable: store.isReachable)
        let entry = LeaseEntry(key, name, machine, loop)
        entries[name.text] = entry
        entry.timer.onExpiry = { [weak self, weak entry] in
            if let entry { self?.handle(.timerFired, entry) }
        }
        entry.offerTimer.onExpiry = { [weak self, weak entry] in
            if let entry { self?.callbacks.offerSession(entry.key, entry.name) }
        }
        store.subscribe(to: name.text)
        // Another node may have established the session earlier.
        if store.isReachable { handle(.storeConnected, entry) }
        return entry
    }

    private func handle(_ event: LeaseMachine.Event, _ entry: LeaseEntry) {
        let actions = entry.machine.handle(event, now: now, random: random())
        for action in actions { perform(action, entry) }
        if let deadline = entry.machine.nextDeadline {
            entry.timer.arm(at: loop.now + LoopDelay(.milliseconds(max(0, deadline - now))))
        } else {
            entry.timer.disarm()
        }
    }

    private func perform(_ action: LeaseMachine.Action, _ entry: LeaseEntry) {
        switch action {
        case .send(let request): send(request, entry)
        case .readLatches: readAttempts { [weak self] in self?.handle(.latchesRead($0), entry) }
        case .beginLogin(let generation):
            callbacks.updateStatistics { if generation == nil { $0.alone += 1 } else { $0.leases += 1 } }
            decide(.logIn, entry)
        case .finish(.session(_, let bytes)): decide(.session(bytes), entry)
        case .finish(.failure(let bytes, _)):
            callbacks.updateStatistics { $0.failures += 1 }
            decide(.failure(bytes), entry)
        case .finish(.established(let generation)):
            if generation != nil { callbacks.updateStatistics { $0.published += 1 } }
            requeueWaiter(of: entry)
        case .finish(.failed): requeueWaiter(of: entry)
        case .finish(.leftToOther): decide(.leftToOther, entry)
        case .adoptSession(_, let bytes):
            entry.untakenSession = bytes
            callbacks.adoptSession(entry.key, entry.name, bytes)
        case .dropSession: callbacks.dropSession(entry.key)
        }
    }

    private func send(_ request: StoreRequest, _ entry: LeaseEntry) {
        store.send(request, for: entry.name.text) { [weak self] reply in
            guard let self else { return }
            callbacks.updateStatistics {
                $0.requests += 1
                if reply == nil { $0.unanswered += 1 }
            }
            // Latches are closed even if the lease was lost.
            if case .fail(_, _, _, _, _, let closed) = request, reply != nil {
                gate.change { $0.shared.confirmLatches(closed) }
            }
            handle(.replyReceived(reply, latches: attemptCount), entry)
        }
    }

    /// Requests the session again for a waiter that came during this node's login. `SessionTable` prevents such waiters.
    private func requeueWaiter(of entry: LeaseEntry) {
        guard let decide = entry.decide else { return }
        entry.decide = nil
        let (key, name) = (entry.key, entry.name)
        let bound = LoopBound((coordinator: self, decide: decide), to: loop)
        loop.execute { bound.value.coordinator.requestSession(key, name, isRenewal: false, bound.value.decide) }
    }

    private func decide(_ decision: Decision, _ entry: LeaseEntry) {
        let waiter = entry.decide
        entry.decide = nil
        waiter?(decision)
    }

    /// Milliseconds of a monotonic clock that runs on during suspension, as leases do.
    private var now: Int64 { Int64(loop.continuousNow.nanoseconds / 1_000_000) }

    private static func randomText() -> String {
        (0..<4).map { _ in Hex.encode(UInt32.random(in: .min ... .max)) }.joined()
    }
}

/// Gives any thread access to the coordinator, which is used on one worker's loop.
///
/// Work that comes while the coordinator is being opened waits for it: a login that did not wait would be one besides the other nodes'.
final class LeaseCoordinatorHandle: Sendable {
    typealias Work = @Sendable (LeaseCoordinator?) -> Void

    private struct OpenCoordinator: Sendable {
        let loop: EventLoop
        let bound: LoopBound<LeaseCoordinator>
    }

    private enum State: Sendable {
        /// Nothing is shared yet, or any more. Legal next: opening.
        case closed
        /// A worker is opening the coordinator, and this work waits. Legal next: open, closed.
        case opening([Work])
        /// Legal next: closed.
        case open(OpenCoordinator)
    }

    private let state = Mutex(State.closed)

    /// Makes work wait from now on, because a worker is about to open the coordinator.
    func beginOpening() { state.withLock { $0 = .opening([]) } }

    /// Opens `coordinator` on the calling thread's loop; returns false if it was closed meanwhile.
    func open(_ coordinator: LeaseCoordinator, on loop: EventLoop) -> Bool {
        let bound = LoopBound(coordinator, to: loop)
        let waiting = state.withLock { state -> [Work]? in
            guard case .opening(let waiting) = state else { return nil }
            state = .open(OpenCoordinator(loop: loop, bound: bound))
            return waiting
        }
        guard let waiting else { return false }
        // After the caller's own first calls.
        loop.execute { for work in waiting { work(bound.value) } }
        return true
    }

    /// Closes the coordinator; `last` is its last work. Waiting work is done without one.
    func close(_ last: @escaping @Sendable (LeaseCoordinator) -> Void = { _ in }) {
        let before = state.withLock { state -> State in
            defer { state = .closed }
            return state
        }
        switch before {
        case .closed: break
        case .opening(let waiting): for work in waiting { work(nil) }
        case .open(let opened): opened.loop.execute { last(opened.bound.value) }
        }
    }

    /// Runs `work` on the coordinator's loop; at once with `nil` if it is closed.
    func execute(_ work: @escaping Work) {
        let present = state.withLock { state -> State in
            guard case .opening(var waiting) = state else { return state }
            // In place: a copy for each would make the wait quadratic.
            state = .opening([])
            waiting.append(work)
            state = .opening(waiting)
            return .opening([])
        }
        switch present {
        case .closed: work(nil)
        case .opening: break
        case .open(let opened): opened.loop.execute { work(opened.bound.value) }
        }
    }
}

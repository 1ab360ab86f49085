// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets
import Synchronization

/// The identity of an exchange that waits for a login, on any worker.
package struct ExchangeTicket: Sendable, Equatable, Hashable {
    /// The worker's number.
    package let worker: Int
    /// The exchange's number, unique on that worker.
    package let exchange: UInt64

    /// Creates a ticket.
    package init(worker: Int, exchange: UInt64) {
        self.worker = worker
        self.exchange = exchange
    }
}

/// The attempt gate of a process, shared by all workers and protected by one lock.
///
/// The lock is never taken on the hot path: a worker reads `version`, and takes a fresh snapshot only after a change. The lock is
/// never held while the store works. A change takes effect in memory immediately. The store then writes the changes, one write at a
/// time, and a call returns only after the write with its change.
package final class SharedAttemptGate: AttemptControl {
    /// The outcome of a login for each exchange that waited for it.
    package typealias Outcomes = [(waiter: ExchangeTicket, outcome: SessionTable<ExchangeTicket>.Outcome)]

    /// The observers of changes, called on any thread. They must not block.
    private struct Watchers: Sendable {
        var sessions: (@Sendable () -> Void)?
        var unreported: (@Sendable () -> Void)?
    }

    /// The gate, and its changes for the store.
    private struct State: Sendable {
        var gate: AttemptGate<ExchangeTicket>
        var queue = AttemptQueue()
        /// The logins of the configuration in force.
        var logins: LoginIndex?
    }

    private let state: Mutex<State>
    private let store: any AttemptStore
    private let sharedDigests: @Sendable (LatchKey, Credential) -> [String]
    private let chance: @Sendable () -> Double
    let now: @Sendable () -> Int64
    private let counter = Atomic<UInt64>(1)
    private let watchers = Mutex(Watchers())
    private let hasRefusals = Atomic(false)

    /// Creates a gate that stores its record in `store`.
    ///
    /// `sharedDigests`: the digests by which nodes know a value, if they share latches. `chance`: a random number in
    /// 0..<1 that spreads renewals. `now`: milliseconds since 1970.
    package init(
        limits: SessionLimits = SessionLimits(), store: any AttemptStore = UnkeptAttempts(),
        sharedDigests: @escaping @Sendable (LatchKey, Credential) -> [String] = { _, _ in [] },
        chance: @escaping @Sendable () -> Double = { .random(in: 0..<1) }, now: @escaping @Sendable () -> Int64
    ) {
        self.chance = chance
        self.store = store
        self.sharedDigests = sharedDigests
        self.now = now
        state = Mutex(State(gate: AttemptGate(limits: limits, record: store.load())))
    }

    /// A counter that rises with every change of the held sessions.
    package var version: UInt64 { counter.load(ordering: .acquiring) }

    /// Sets the callback for changes of the sessions.
    package func watch(_ watcher: @escaping @Sendable () -> Void) { watchers.withLock { $0.sessions = watcher } }

    /// Sets the callback for latches and used one-time passwords that other nodes do not know; `nil` removes the callback.
    package func watchUnreported(_ watcher: (@Sendable () -> Void)?) { watchers.withLock { $0.unreported = watcher } }

    /// Returns the result of a query of the gate.
    package func read<Answer>(_ body: (borrowing AttemptGate<ExchangeTicket>) -> sending Answer) -> sending Answer {
        state.withLock { body($0.gate) }
    }

    /// Applies a change to the gate and returns its result. Snapshots become outdated if sessions have changed.
    package func change<Answer>(
        _ body: (inout AttemptGate<ExchangeTicket>) -> sending Answer
    ) -> sending Answer {
        update { body(&$0.gate) }
    }

    private func update<Answer>(_ body: (inout State) -> sending Answer) -> sending Answer {
        var (hasMoved, hasUnreported) = (false, false)
        let answer = state.withLock { state in
            let (version, revision) = (state.gate.sessions.version, state.gate.shared.revision)
            let answer = body(&state)
            hasMoved = state.gate.sessions.version != version
            hasUnreported = state.gate.shared.revision != revision
            hasRefusals.store(!state.gate.refusals.isEmpty, ordering: .relaxed)
            return answer
        }
        if hasMoved {
            counter.wrappingAdd(1, ordering: .releasing)
            watchers.withLock { $0.sessions }?()
        }
        if hasUnreported { watchers.withLock { $0.unreported }?() }
        return answer
    }

    private func digests(_ key: LatchKey, _ credential: Credential) -> AttemptDigests {
        AttemptDigests(own: store.digest(of: credential), shared: sharedDigests(key, credential))
    }
}

// Storing. A change is applied and queued under one lock, so memory and store have the same order.
extension SharedAttemptGate {
    /// Applies a change and queues the change of the record. Returns the result, and a ticket if a change was queued.
    func applyAndQueue<Answer: Sendable>(
        _ body: (inout AttemptGate<ExchangeTicket>) -> (Answer, AttemptChange?)
    ) -> (Answer, AttemptQueue.Ticket?) {
        let made = update { state -> (Answer, AttemptQueue.Ticket?) in
            let (answer, change) = body(&state.gate)
            return (answer, change.map { state.queue.enqueue($0) })
        }
        writeNext()
        return made
    }

    /// Starts the next write of queued changes, unless a write is running.
    private func writeNext() {
        let next = state.withLock { state in state.queue.begin().map { (changes: $0, record: state.gate.record) } }
        guard let next else { return }
        store.store(next.changes, of: next.record) { [self] kept in
            let waiters = update { state in
                if let kept { state.gate.merge(kept, then: state.queue.queued) }
                return state.queue.end(isWritten: kept != nil)
            }
            for waiter in waiters { waiter() }
            writeNext()
        }
    }

    /// Changes that could not be stored, and are only in memory.
    package var unwritten: [AttemptChange] { state.withLock { $0.queue.unwritten } }

    /// Writes the changes that could not be stored before, if there are any.
    package func retryWrites() {
        state.withLock { $0.queue.retry() }
        writeNext()
    }

    /// Calls `waiter` when the change of `ticket` is stored, or could not be stored.
    func whenStored(_ ticket: AttemptQueue.Ticket?, _ waiter: @escaping AttemptQueue.Waiter) {
        let hasToWait = ticket.map { ticket in state.withLock { $0.queue.wait(for: ticket, waiter) } } ?? false
        if !hasToWait { waiter() }
    }

    private func waitUntilStored(_ ticket: AttemptQueue.Ticket?) async {
        guard let ticket else { return }
        await withCheckedContinuation { continuation in whenStored(ticket) { continuation.resume() } }
    }
}

// Sessions.
extension SharedAttemptGate {
    /// Keeps the sessions of these logins, and makes room for all of them. Does nothing if it has done so before.
    package func serve(_ logins: LoginIndex) {
        update { state in
            guard state.logins !== logins else { return }
            state.logins = logins
            state.gate.sessions.keep(logins.keptKeys, of: logins.count)
        }
    }

    /// Returns the session held for `key`.
    package func held(_ key: SessionKey) -> HeldSession? { read { $0.sessions.held(key) } }

    /// Returns the state of a key at `now` (milliseconds since 1970).
    package func state(of key: SessionKey, now: Int64) -> SessionState {
        read { $0.sessions.state(of: key, now: now) }
    }

    /// Ends the login of `key`. Returns the outcomes for its waiters.
    ///
    /// After a failure, the session that was to be replaced stays in use. It ends if it sends a value which another
    /// process or node has latched; if the value was rejected here, its sessions have ended already.
    package func finish(_ key: SessionKey, with result: Result<Session, LoginFailure>) -> Outcomes {
        let (now, chance) = (now(), chance())
        if case .failure = result, let old = read({ $0.sessions.session(of: key) }), let use = old.session.use,
            refusal(of: use, remaining: .unknown, keeping: 0, now: now) != nil
        {
            change { $0.sessions.drop(key, generation: old.generation) }
        }
        var value: AttemptDigests?
        if case .success(let session) = result, !session.isVerified, let use = session.use {
            value = digests(use.key, use.credential)
        }
        return change { $0.finish(key, with: result, sending: value, now: now, chance: chance) }
    }

    /// Records the result of an exchange that tried a session. Returns the outcomes for the waiters.
    package func recordVerification(
        of key: SessionKey, generation: UInt64, _ result: SessionTable<ExchangeTicket>.VerificationResult,
        by ticket: ExchangeTicket
    ) -> Outcomes {
        let (now, chance) = (now(), chance())
        return change {
            $0.sessions.recordVerification(
                of: key, generation: generation, result, by: ticket, now: now, chance: chance)
        }
    }

    /// Records that an exchange that tries a session has had no answer for a while. Returns the outcomes for the waiters.
    package func recordSilence(of key: SessionKey, generation: UInt64, by ticket: ExchangeTicket) -> Outcomes {
        let now = now()
        return change { $0.sessions.recordSilence(of: key, generation: generation, by: ticket, now: now) }
    }

    /// Adopts a session that another node or process established at `establishedAt`; see `SessionTable.adopt`.
    ///
    /// A session that sends a credential is recreated with the present value, which may have been rejected since: then returns false.
    package func adopt(_ key: SessionKey, _ session: Session, establishedAt: Int64, replacing: Bool = false) -> Bool {
        let (now, chance) = (now(), chance())
        if let use = session.use, refusal(of: use, remaining: .unknown, keeping: 0, now: now) != nil { return false }
        return change {
            $0.sessions.adopt(
                key, session, establishedAt: establishedAt, now: now, replacing: replacing, chance: chance)
        }
    }

    /// False if no resource has ever refused a session; read without the lock.
    var mayRefuse: Bool { hasRefusals.load(ordering: .relaxed) }

    /// Records that a resource refused a new session, or one that is accepted elsewhere.
    func recordRefusal(_ use: RefusedUse) {
        let now = now()
        change { $0.refusals.recordRefusal(use, now: now) }
    }

    /// Returns true if a resource has recently refused the session of `resource` (CONTRIBUTING, rule 4).
    ///
    /// Also applies to the login for that session.
    func isRefused(_ resource: ResourceKey) -> Bool {
        let now = now()
        return change { $0.refusals.passesChallenge(at: resource, generation: 0, now: now) }
    }
}

// Values.
extension SharedAttemptGate {
    /// Returns the reason against sending the value of `use` now, or `nil`.
    package func refusal(
        of use: CredentialUse, remaining: SecurityCheckChallenge.RemainingAttempts, keeping: Int, now: Int64
    ) -> AttemptRefusal? {
        let digests = digests(use.key, use.credential)
        return change { gate in
            gate.recordValue(digests, of: use.key)
            return gate.refusal(use.key, digests, remaining: remaining, keeping: keeping, now: now)
        }
    }

    /// Records the current value of a credential for the list of other nodes' latches. Sends nothing.
    package func recordValue(of use: CredentialUse) {
        let digests = digests(use.key, use.credential)
        change { $0.recordValue(digests, of: use.key) }
    }

    /// Records an outcome; see `AttemptControl.record(_:of:)`.
    package func record(_ outcome: AttemptOutcome, of use: CredentialUse) async {
        await waitUntilStored(enqueue(outcome, of: use))
    }

    private func enqueue(_ outcome: AttemptOutcome, of use: CredentialUse) -> AttemptQueue.Ticket? {
        let digests = digests(use.key, use.credential)
        return applyAndQueue { gate in
            // At once: the login that found out ends when the latch is on disk, and requests do not wait for that.
            if case .rejected = outcome { gate.sessions.dropSessions(sending: use) }
            return ((), gate.record(outcome, of: use.key, digests))
        }.1
    }

    /// Returns the pause of a value; see `AttemptControl.pause(of:now:)`. None while a session that it established works: renewals
    /// ahead of its end are no attempts at an unknown value.
    package func pause(of use: CredentialUse, now: Int64) -> AttemptRefusal? {
        let digests = digests(use.key, use.credential)
        return read { $0.sessions.holdsSession(submitting: use, now: now) ? nil : $0.pause(use.key, digests, now: now) }
    }

    /// Counts a submission; see `AttemptControl.recordSubmission(of:isSent:now:)`.
    package func recordSubmission(of use: CredentialUse, isSent: Bool, now: Int64) async {
        let digests = digests(use.key, use.credential)
        let (_, ticket) = applyAndQueue { gate -> (Void, AttemptChange?) in
            let isRenewal = isSent && gate.sessions.holdsSession(submitting: use, now: now)
            return ((), isRenewal ? nil : gate.recordSubmission(of: use.key, digests, isSent: isSent, now: now))
        }
        await waitUntilStored(ticket)
    }

    /// Returns accepted forms; see `AttemptControl.acceptedForms(ofCredential:)`.
    package func acceptedForms(ofCredential name: String) -> [(key: LatchKey, form: AcceptedForm)] {
        read { $0.acceptedForms(ofCredential: name) }
    }

    /// Returns the record that a server has accepted the value of `use`, if any.
    package func acceptance(of use: CredentialUse) -> Acceptance? {
        let digests = digests(use.key, use.credential)
        return read { $0.acceptance(use.key, digests) }
    }

    /// Records that a request to `address` with the value of `use` was accepted.
    ///
    /// Most conclusive is a request that was challenged without the value (`challenge`), because an open path accepts anything.
    /// `isSafe` means GET or HEAD, whose path is better suited for another check. A known address changes nothing.
    ///
    /// Does not wait for the disk: without the record, the value counts as never accepted, which is safe. Returns true if the
    /// address was not known.
    @discardableResult
    func recordAcceptance(
        _ use: CredentialUse, by login: Authenticator, challenge: ExaminedResponse?, address: WebURL, isSafe: Bool,
        form: AcceptedForm? = nil, now: Int64
    ) -> Bool {
        var wasAsked = false
        if let challenge, case .challenged? = login.trigger.detector?.examine(challenge, hasSession: false) {
            wasAsked = true
        }
        let known = acceptance(of: use)
        let path = isSafe || known?.path == nil ? address.path : nil
        if let known, known.wasAsked || !wasAsked, form == nil || form == known.form,
            path.map({ known.has(Acceptance.Address(path: $0, wasAsked: wasAsked)) }) ?? true
        {
            return false
        }
        _ = enqueue(.accepted(Acceptance(path: path, at: now, wasAsked: wasAsked, form: form)), of: use)
        return true
    }

    /// Uses a step of a one-time password; see `AttemptControl.use(code:stepEnding:isUsed:now:)`.
    ///
    /// The store is read first, for steps that another process has used.
    package func use(code seed: String, stepEnding end: Int64, isUsed: Bool, now: Int64) async -> Int64? {
        let read = update { $0.queue.enqueueRead() }
        writeNext()
        await waitUntilStored(read)
        let (usedUntil, ticket) = applyAndQueue { $0.use(code: seed, stepEnding: end, isUsed: isUsed, now: now) }
        await waitUntilStored(ticket)
        return usedUntil
    }

    /// Returns the refusal of an answer; see `AttemptControl.refusal(of:to:)`.
    package func refusal(of answer: Secret, to challenge: String) -> AttemptRefusal? {
        read { $0.refusal(of: answer, to: challenge) }
    }

    /// Records the outcome of an answer; see `AttemptControl.record(_:to:acceptedAt:)`.
    package func record(_ answer: Secret, to challenge: String, acceptedAt address: WebURL?) {
        change { $0.record(answer, to: challenge, acceptedAt: address) }
    }

    /// Returns the address that accepted an answer; see `AttemptControl.address(accepting:to:)`.
    package func address(accepting answer: Secret, to challenge: String) -> WebURL? {
        read { $0.address(accepting: answer, to: challenge) }
    }
}

// Other nodes.
extension SharedAttemptGate {
    /// Merges the records of the session store. Returns the challenges whose latches were opened since the last read.
    package func merge(_ attempts: SharedAttempts) -> Set<String> {
        let now = now()
        let opened = update { state in
            let (opened, changes) = state.gate.merge(attempts, now: now)
            for change in changes { _ = state.queue.enqueue(change) }
            return opened
        }
        writeNext()
        return opened
    }
}

// Other processes.
extension SharedAttemptGate {
    /// Reads the store, for latches that another process has closed, and calls `done` afterwards.
    package func refresh(_ done: @escaping @Sendable () -> Void) {
        let read = update { $0.queue.enqueueRead() }
        writeNext()
        whenStored(read, done)
    }
}

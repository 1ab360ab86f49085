// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeClient
package import ChallengeHandling
internal import Curl
package import EventLoop
internal import Redis

/// The session store on a Valkey or Redis (6 or later), on a worker's loop.
///
/// Two connections, one for requests and one for events, count as one: if either is lost, both are closed, and the store is
/// unreachable until both are back. So a node that gets `connected` misses no event from there on. Requests to an unreachable store
/// are answered with `nil` at once; those before the first connection wait for it, for at most `replyTimeout`.
package final class RedisStore: SessionStore {
    /// Most sessions that are subscribed to.
    static let maxSubscriptions = 65_536
    /// Most channels in one command.
    private static let channelsAtOnce = 128
    /// Time after which a connection counts as stable, so that pauses begin small again.
    private static let stableTime = Duration.seconds(5)

    private enum State {
        /// Before `connect`. Legal next: connecting, closed.
        case idle
        /// Both connections are being made. Legal next: connected, pausing, closed.
        case connecting
        /// Legal next: pausing, closed.
        case connected
        /// A pause before the next connection. Legal next: connecting, closed.
        case pausing
        case closed
    }

    /// A request that waits for the first connection.
    private struct EarlyCall {
        let call: RedisCall
        let completion: (Reply?) -> Void
    }

    /// True if the store answers, as far as is known; true before the first failure.
    package private(set) var isReachable = true
    /// Receives events; set before `connect`.
    package var onEvent: ((StoreEvent) -> Void)?

    private let plan: RedisStorePlan
    private let wallClock: () -> Int64
    private let random: () -> Double
    private let loop: EventLoop
    private let driver: CurlDriver
    private let credentials: (any CredentialProvider)?
    private let timer: LazyTimer
    private let earlyTimer: LazyTimer
    private var state = State.idle
    /// Number of the connection attempt, which a late credential compares.
    private var attempt = 0
    private var failures = 0
    private var connectedAt = LoopInstant.never
    /// Last reported reason for being unreachable.
    private var reason: String?
    private var requests: RedisConnection?
    private var events: RedisConnection?
    private var missingConnections = 0
    private var subscriptions: Set<String> = []
    /// Subscriptions that are sent at the end of this turn.
    private var newSubscriptions: [String] = []
    private var earlyCalls: [EarlyCall] = []

    /// The session store of `plan`, to be made on the thread of `loop`.
    ///
    /// `driver` is the libcurl driver of that thread for connections; `credentials` provides the one that the plan names; `wallClock`
    /// returns milliseconds since 1970.
    package init(
        _ plan: RedisStorePlan, loop: EventLoop, driver: CurlDriver, credentials: (any CredentialProvider)? = nil,
        wallClock: @escaping () -> Int64, random: @escaping () -> Double = { .random(in: 0..<1) }
    ) {
        self.plan = plan
        self.loop = loop
        self.driver = driver
        self.credentials = credentials
        self.wallClock = wallClock
        self.random = random
        timer = LazyTimer(loop: loop)
        earlyTimer = LazyTimer(loop: loop)
        timer.onExpiry = { [weak self] in self?.timerFired() }
        earlyTimer.onExpiry = { [weak self] in
            guard let self else { return }
            becomeUnreachable("it does not answer within \(plan.replyTimeout)")
            refuseEarlyCalls()
        }
    }

    deinit { close() }

    /// Connects, and reconnects after each loss of the connection.
    package func connect() {
        guard state == .idle else { return }
        makeConnections()
    }

    /// Closes the connections; pending requests are answered with `nil`.
    package func close() {
        guard state != .closed else { return }
        state = .closed
        isReachable = false
        timer.cancel()
        earlyTimer.cancel()
        closeConnections()
        refuseEarlyCalls()
    }

    /// Subscribes to events about a session.
    package func subscribe(to name: String) {
        guard subscriptions.count < Self.maxSubscriptions, subscriptions.insert(name).inserted else { return }
        // A reload subscribes to many in one turn.
        if newSubscriptions.isEmpty {
            let bound = LoopBound(self, to: loop)
            loop.execute { bound.value.sendNewSubscriptions() }
        }
        newSubscriptions.append(name)
    }

    // MARK: Requests

    /// Sends `request` for the session of `name`; `completion` is never called from within this call.
    package func send(_ request: StoreRequest, for name: String, _ completion: @escaping (StoreReply?) -> Void) {
        run(RedisCall(request, for: name, plan, now: wallClock())) { [weak self] reply in
            let meaning = reply.flatMap(RedisAnswer.reply)
            if reply != nil, meaning == nil { self?.endAfterStrangeReply() }
            completion(meaning.map { $0.naming(request) })
        }
    }

    /// Reads the shared latches and used one-time codes.
    package func readAttempts(_ completion: @escaping (SharedAttempts?) -> Void) {
        run(.readAttempts(plan)) { [weak self] reply in
            guard let self, let reply else { return completion(nil) }
            let meaning = RedisAnswer.attempts(reply, now: wallClock())
            if meaning == nil { endAfterStrangeReply() }
            completion(meaning)
        }
    }

    /// Closes latches that no failed login under a lease has reported.
    package func closeLatches(_ latches: [SharedLatch], _ completion: @escaping (Bool) -> Void) {
        guard let call = RedisCall.closeLatches(latches, plan, now: wallClock()) else { return completion(true) }
        run(call) { completion($0.flatMap(RedisAnswer.count) != nil) }
    }

    /// Opens all latches of a challenge.
    package func openLatches(of challenge: String, _ completion: @escaping (Int?) -> Void) {
        run(.openLatches(of: challenge, plan)) { completion($0.flatMap(RedisAnswer.count)) }
    }

    /// Marks steps of one-time codes as used.
    package func markUsed(_ codes: UsedCodes, _ completion: @escaping (Bool) -> Void) {
        run(.markUsed(codes, plan)) { completion($0.flatMap(RedisAnswer.count) != nil) }
    }

    /// Runs the script. `completion` gets its reply or `nil`, never an error, and never from within this call.
    private func run(_ call: RedisCall, _ completion: @escaping (Reply?) -> Void) {
        guard !call.isTooLong, isReachable, state == .connected || earlyCalls.count < RedisConnection.maxPending,
            state != .closed
        else {
            let bound = LoopBound(completion, to: loop)
            loop.execute { bound.value(nil) }
            return
        }
        guard state == .connected, let requests else {
            if earlyCalls.isEmpty { earlyTimer.arm(at: loop.now + plan.replyTimeout) }
            earlyCalls.append(EarlyCall(call: call, completion: completion))
            return
        }
        requests.send(call.short) { [weak requests] reply in
            guard let requests, reply?.errorCode == "NOSCRIPT" else {
                return Self.complete(completion, with: reply, on: requests)
            }
            requests.send(call.full) { [weak requests] in Self.complete(completion, with: $0, on: requests) }
        }
    }

    private static func complete(
        _ completion: (Reply?) -> Void, with reply: Reply?, on connection: RedisConnection?
    ) {
        guard let code = reply?.errorCode else { return completion(reply) }
        connection?.end(RedisStoreError(code: code))
        completion(nil)
    }

    /// Ends the connection after a reply that the script never gives.
    private func endAfterStrangeReply() {
        requests?.end(RedisStoreError("its answer is not one that the script gives"))
    }

    // MARK: Connecting

    private func makeConnections() {
        state = .connecting
        attempt += 1
        guard let name = plan.credential else { return open(with: nil) }
        let bound = LoopBound(self, to: loop)
        let (attempt, credentials) = (attempt, credentials)
        Task(executorPreference: loop) {
            var found: Result<Credential?, CredentialError> = .success(nil)
            do throws(CredentialError) {
                found = .success(try await credentials?.credential(named: name))
            } catch {
                found = .failure(error)
            }
            bound.value.open(with: found, for: attempt)
        }
    }

    private func open(with found: Result<Credential?, CredentialError>, for attempt: Int) {
        guard state == .connecting, attempt == self.attempt else { return }
        switch found {
        case .success(let credential?) where credential["password"] != nil: open(with: credential)
        case .success(let credential):
            let words = credential == nil ? "no source knows it" : "it has no field `password`"
            pause(
                after: RedisStoreError(
                    "its credential \(plan.credential ?? "") cannot be used: \(words)", lasting: true))
        case .failure(let error): pause(after: RedisStoreError("its credential cannot be read: \(error.reason)"))
        }
    }

    private func open(with credential: Credential?) {
        do throws(CurlError) {
            let requests = try RedisConnection(plan, loop: loop, driver: driver)
            let events = try RedisConnection(plan, loop: loop, driver: driver)
            (self.requests, self.events) = (requests, events)
            missingConnections = 2
            for connection in [requests, events] {
                connection.onEnd = { [weak self] in self?.pause(after: $0) }
                if let password = credential?["password"] {
                    connection.authenticate(user: credential?["username"], password: password) {
                        [weak self, weak connection] in self?.expect("OK", $0, on: connection)
                    }
                }
            }
            events.onMessage = { [weak self] in self?.received(message: $0) ?? true }
            if plan.database != 0 {
                requests.send(Command(["SELECT", .init(Int64(plan.database))])) { [weak self, weak requests] in
                    self?.expect("OK", $0, on: requests)
                }
            }
            sendSubscriptions([plan.attemptChannel] + subscriptions.map(plan.eventChannel))
            for connection in [requests, events] {
                connection.send(Command(["PING"])) { [weak self, weak connection] reply in
                    if let self, expect("PONG", reply, on: connection) { connectionMade() }
                }
            }
            try requests.open()
            try events.open()
        } catch {
            pause(after: RedisStoreError(TransferFailure(error)))
        }
    }

    /// Returns true if `reply` is that word, in either form. Otherwise ends the connection.
    @discardableResult
    private func expect(_ word: String, _ reply: Reply?, on connection: RedisConnection?) -> Bool {
        guard let reply else { return false }
        if reply.text == word || reply.elements?.first?.text == word.lowercased() { return true }
        connection?.end(
            reply.errorCode.map(RedisStoreError.init(code:)) ?? RedisStoreError("its answer is not a session store's"))
        return false
    }

    private func connectionMade() {
        missingConnections -= 1
        guard missingConnections == 0, state == .connecting else { return }
        state = .connected
        isReachable = true
        reason = nil
        connectedAt = loop.now
        timer.arm(at: loop.now + plan.keepAlive)
        earlyTimer.disarm()
        let waiting = earlyCalls
        earlyCalls = []
        for early in waiting { run(early.call, early.completion) }
        onEvent?(.connected)
    }

    private func sendNewSubscriptions() {
        let names = newSubscriptions
        newSubscriptions = []
        sendSubscriptions(names.map(plan.eventChannel))
    }

    private func sendSubscriptions(_ channels: [String]) {
        var rest = channels[...]
        while let events, !rest.isEmpty {
            let part = rest.prefix(Self.channelsAtOnce)
            rest = rest.dropFirst(part.count)
            events.send(Command(["SUBSCRIBE"] + part.map { .init($0) }), replies: part.count) {
                [weak self, weak events] reply in
                // A missing subscription would go unnoticed.
                if reply == nil { events?.end(RedisStoreError("more data waits for it than it reads")) }
                self?.expect("subscribe", reply, on: events)
            }
        }
    }

    /// Returns true for a published message; messages of other programs on the same channels are ignored.
    private func received(message reply: Reply) -> Bool {
        guard reply.elements?.first?.text == "message" else { return false }
        if state == .connected, let event = RedisAnswer.event(reply, plan) { onEvent?(event) }
        return true
    }

    // MARK: Disconnecting

    /// Closes both connections after the loss of one, and reconnects after a pause.
    private func pause(after error: RedisStoreError) {
        guard state == .connecting || state == .connected else { return }
        if state == .connected, loop.now - connectedAt >= Self.stableTime { failures = 0 }
        state = .pausing
        timer.arm(at: loop.now + pauseDuration(after: error))
        failures = min(failures + 1, 16)
        becomeUnreachable(error.words)
        closeConnections()
        refuseEarlyCalls()
    }

    private func pauseDuration(after error: RedisStoreError) -> Duration {
        let grown = plan.firstPause * Double(1 << min(failures, 16))
        return (error.isLasting ? plan.longestPause : min(grown, plan.longestPause)) * (0.5 + random())
    }

    private func becomeUnreachable(_ words: String) {
        isReachable = false
        guard words != reason else { return }
        reason = words
        onEvent?(.disconnected(reason: words))
    }

    private func closeConnections() {
        let connections = [requests, events]
        (requests, events) = (nil, nil)
        for connection in connections { connection?.close() }
    }

    private func refuseEarlyCalls() {
        earlyTimer.disarm()
        let refused = earlyCalls
        earlyCalls = []
        for early in refused { early.completion(nil) }
    }

    private func timerFired() {
        switch state {
        case .pausing: makeConnections()
        case .connected:
            timer.arm(at: loop.now + plan.keepAlive)
            for connection in [requests, events] {
                connection?.send(Command(["PING"])) { [weak self, weak connection] in
                    self?.expect("PONG", $0, on: connection)
                }
            }
        case .closed, .connecting, .idle: break
        }
    }
}

extension StoreReply {
    /// Returns the reply with the generation of the request. Lua has no numbers for the largest.
    fileprivate func naming(_ request: StoreRequest) -> StoreReply {
        guard case .done = self else { return self }
        switch request {
        case .extend(_, let generation, _), .publish(_, let generation, _, _), .fail(_, let generation, _, _, _, _),
            .drop(let generation):
            return .done(generation: generation)
        case .acquire, .offer, .fetch: return self
        }
    }
}

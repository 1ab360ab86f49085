// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Curl
package import EventLoop
internal import Redis

/// The session engine: a Valkey or Redis (6 or later), spoken to on a worker's loop.
///
/// There are two connections, one for requests and one that is told the news, and they are one: where either is lost, both are, and
/// the engine is away until both are back; whoever hears `connected` then knows that he hears of everything that happens from
/// there on. Away, a request is answered with `nil` at once. While nothing is known yet, at the beginning, requests wait for the
/// first connection, as long as they would for an answer.
package final class RedisEngine: SessionEngine {
    /// How many sessions it hears of at most.
    static let mostFollowed = 65_536
    /// How many sessions one command names.
    private static let namesAtOnce = 128
    /// After how long a connection counts as a good one, so that pauses begin small again.
    private static let proven = Duration.seconds(5)

    private enum State {
        case idle
        /// Both connections are being made.
        case connecting
        case up
        /// A pause before the next attempt.
        case resting
        case over
    }

    /// A request that waits for the first connection.
    private struct Early {
        let call: EngineCall
        let answered: (Reply?) -> Void
    }

    /// True if it answers, as far as is known: false from a failure until it answers again.
    package private(set) var isThere = true
    /// Told of whatever the engine tells unasked; set before `begin`.
    package var listener: ((EngineNews) -> Void)?

    let plan: RedisEnginePlan
    let wallClock: () -> Int64
    /// Makes a number in 0..<1.
    private let chance: () -> Double
    private let loop: EventLoop
    private let driver: CurlDriver
    private let credentials: (any CredentialProvider)?
    private let timer: LazyTimer
    private let earlyTimer: LazyTimer
    private var state = State.idle
    private var attempt = 0
    private var failures = 0
    private var upSince = LoopInstant.never
    /// What was last told of why it is away.
    private var reason: String?
    private var requests: EngineLine?
    private var news: EngineLine?
    private var linesMissing = 0
    private var followed: Set<String> = []
    /// Those of them that the engine is told of at the end of this turn.
    private var joining: [String] = []
    private var early: [Early] = []

    /// The engine of `plan`, on `loop`, to be made on its thread; `driver` is libcurl there, for connections that others speak on.
    /// `credentials` knows the one that the plan names; `wallClock` tells milliseconds since 1970.
    package init(
        _ plan: RedisEnginePlan, loop: EventLoop, driver: CurlDriver, credentials: (any CredentialProvider)? = nil,
        wallClock: @escaping () -> Int64, chance: @escaping () -> Double = { .random(in: 0..<1) }
    ) {
        self.plan = plan
        self.loop = loop
        self.driver = driver
        self.credentials = credentials
        self.wallClock = wallClock
        self.chance = chance
        timer = LazyTimer(loop: loop)
        earlyTimer = LazyTimer(loop: loop)
        timer.onExpiry = { [weak self] in self?.timePassed() }
        earlyTimer.onExpiry = { [weak self] in
            guard let self else { return }
            goAway(because: "it does not answer within \(plan.patience)")
            refuseEarly()
        }
    }

    deinit { end() }

    /// Connects, and goes on connecting whenever the connection is lost.
    package func begin() {
        guard state == .idle else { return }
        connect()
    }

    /// Closes the connections; what is under way is answered with `nil`.
    package func end() {
        guard state != .over else { return }
        state = .over
        isThere = false
        timer.cancel()
        earlyTimer.cancel()
        closeLines()
        refuseEarly()
    }

    /// From now on also hears of that session.
    package func follow(_ name: String) {
        guard followed.count < Self.mostFollowed, followed.insert(name).inserted else { return }
        // A reload follows many in one turn.
        if joining.isEmpty {
            let bound = LoopBound(self, to: loop)
            loop.execute { bound.value.join() }
        }
        joining.append(name)
    }

    private func join() {
        let names = joining
        joining = []
        subscribe(names.map(plan.newsChannel))
    }

    /// Runs the script for `call`; `answered` gets its reply, never an error, or `nil`. Not from within this call.
    func run(_ call: EngineCall, _ answered: @escaping (Reply?) -> Void) {
        guard !call.isTooLong, isThere, state == .up || early.count < EngineLine.mostWaiting, state != .over else {
            let bound = LoopBound(answered, to: loop)
            loop.execute { bound.value(nil) }
            return
        }
        guard state == .up, let requests else {
            if early.isEmpty { earlyTimer.arm(at: loop.now + plan.patience) }
            early.append(Early(call: call, answered: answered))
            return
        }
        requests.send(call.short) { [weak requests] reply in
            guard let requests, reply?.errorCode == "NOSCRIPT" else {
                return Self.pass(reply, on: requests, answered)
            }
            requests.send(call.full) { [weak requests] reply in Self.pass(reply, on: requests, answered) }
        }
    }

    /// The engine has said something that no script of ours says.
    func protest() { requests?.end(EngineComplaint("its answer is none that the script gives")) }

    private static func pass(_ reply: Reply?, on line: EngineLine?, _ answered: (Reply?) -> Void) {
        guard let code = reply?.errorCode else { return answered(reply) }
        line?.end(EngineComplaint(code: code))
        answered(nil)
    }

    // MARK: Connecting

    private func connect() {
        state = .connecting
        attempt += 1
        guard let name = plan.credential else { return open(nil) }
        let bound = LoopBound(self, to: loop)
        let (attempt, credentials) = (attempt, credentials)
        Task(executorPreference: loop) {
            var found: Result<Credential?, CredentialError> = .success(nil)
            do throws(CredentialError) {
                found = .success(try await credentials?.credential(named: name))
            } catch {
                found = .failure(error)
            }
            bound.value.credentialCame(found, for: attempt)
        }
    }

    private func credentialCame(_ found: Result<Credential?, CredentialError>, for attempt: Int) {
        guard state == .connecting, attempt == self.attempt else { return }
        switch found {
        case .success(let credential?) where credential["password"] != nil: open(credential)
        case .success(let credential):
            let words = credential == nil ? "no source knows it" : "it has no field `password`"
            fail(EngineComplaint("its credential \(plan.credential ?? "") cannot be used: \(words)", lasting: true))
        case .failure(let error): fail(EngineComplaint("its credential cannot be read: \(error.reason)"))
        }
    }

    private func open(_ credential: Credential?) {
        do throws(CurlError) {
            let requests = try EngineLine(plan, loop: loop, driver: driver)
            let news = try EngineLine(plan, loop: loop, driver: driver)
            (self.requests, self.news) = (requests, news)
            linesMissing = 2
            for line in [requests, news] {
                line.onEnd = { [weak self] in self?.fail($0) }
                if let password = credential?["password"] {
                    line.authenticate(user: credential?["username"], password: password) { [weak self, weak line] in
                        self?.expect("OK", $0, on: line)
                    }
                }
            }
            news.onNews = { [weak self] in self?.hear($0) ?? true }
            if plan.database != 0 {
                requests.send(Command(["SELECT", .init(Int64(plan.database))])) { [weak self, weak requests] in
                    self?.expect("OK", $0, on: requests)
                }
            }
            subscribe([plan.latchChannel] + followed.map(plan.newsChannel))
            for line in [requests, news] {
                line.send(Command(["PING"])) { [weak self, weak line] reply in
                    if let self, expect("PONG", reply, on: line) { lineStands() }
                }
            }
            try requests.open()
            try news.open()
        } catch {
            fail(EngineComplaint(TransferFailure(error)))
        }
    }

    /// Returns whether `reply` is that word, or what PING gets on the line of the news; else the line ends.
    @discardableResult
    private func expect(_ word: String, _ reply: Reply?, on line: EngineLine?) -> Bool {
        guard let reply else { return false }
        if reply.text == word || reply.elements?.first?.text == word.lowercased() { return true }
        line?.end(
            reply.errorCode.map(EngineComplaint.init(code:)) ?? EngineComplaint("its answer is no session engine's"))
        return false
    }

    private func lineStands() {
        linesMissing -= 1
        guard linesMissing == 0, state == .connecting else { return }
        state = .up
        isThere = true
        reason = nil
        upSince = loop.now
        timer.arm(at: loop.now + plan.keepAlive)
        earlyTimer.disarm()
        let waited = early
        early = []
        for entry in waited { run(entry.call, entry.answered) }
        listener?(.connected)
    }

    private func subscribe(_ channels: [String]) {
        var rest = channels[...]
        while let news, !rest.isEmpty {
            let part = rest.prefix(Self.namesAtOnce)
            rest = rest.dropFirst(part.count)
            news.send(Command(["SUBSCRIBE"] + part.map { .init($0) }), replies: part.count) {
                [weak self, weak news] reply in
                // Nobody would know that it does not hear of these.
                if reply == nil { news?.end(EngineComplaint("more waits for it than it takes")) }
                self?.expect("subscribe", reply, on: news)
            }
        }
    }

    private func hear(_ reply: Reply) -> Bool {
        guard reply.elements?.first?.text == "message" else { return false }
        // What anybody else says on our channels is none of our business.
        if state == .up, let news = EngineAnswer.news(reply, plan) { listener?(news) }
        return true
    }

    // MARK: Losing

    /// A line has ended, or did not come about.
    private func fail(_ complaint: EngineComplaint) {
        guard state == .connecting || state == .up else { return }
        if state == .up, loop.now - upSince >= Self.proven { failures = 0 }
        state = .resting
        timer.arm(at: loop.now + pause(complaint))
        failures = min(failures + 1, 16)
        goAway(because: complaint.words)
        closeLines()
        refuseEarly()
    }

    private func pause(_ complaint: EngineComplaint) -> Duration {
        let grown = plan.firstPause * Double(1 << min(failures, 16))
        return (complaint.isLasting ? plan.longestPause : min(grown, plan.longestPause)) * (0.5 + chance())
    }

    private func goAway(because words: String) {
        isThere = false
        guard words != reason else { return }
        reason = words
        listener?(.away(reason: words))
    }

    private func closeLines() {
        let lines = [requests, news]
        (requests, news) = (nil, nil)
        for line in lines { line?.close() }
    }

    private func refuseEarly() {
        earlyTimer.disarm()
        let refused = early
        early = []
        for entry in refused { entry.answered(nil) }
    }

    private func timePassed() {
        switch state {
        case .resting: connect()
        case .up:
            timer.arm(at: loop.now + plan.keepAlive)
            for line in [requests, news] {
                line?.send(Command(["PING"])) { [weak self, weak line] in self?.expect("PONG", $0, on: line) }
            }
        case .idle, .connecting, .over: break
        }
    }
}

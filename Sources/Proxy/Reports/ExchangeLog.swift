// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Logging
internal import Synchronization

/// Logs when upstreams and requests begin to fail, keep failing, and recover. It does not log every request.
final class ExchangeLog: Sendable {
    /// Properties by which repeated messages are grouped.
    private struct Kind: Hashable {
        /// The name of the upstream or listener.
        var source: String
        var isUpstream: Bool
        var message: String
        var reason: String
    }

    private struct State {
        var repetitions = Repetitions<Kind>()
        var outages: [String: UpstreamOutage] = [:]
    }

    /// Time without a failure after which an upstream counts as recovered, in milliseconds. So an upstream that fails
    /// now and then is not reported again and again.
    static let quiet: Int64 = 5_000

    private let logger: Logger
    private let wallClock: @Sendable () -> Int64
    private let state = Mutex(State())
    private let isAnyFailing = Atomic<Bool>(false)

    /// Makes a log that writes to `logger`. `wallClock` returns milliseconds since 1970.
    init(logger: Logger, wallClock: @escaping @Sendable () -> Int64) {
        self.logger = logger
        self.wallClock = wallClock
    }

    // MARK: Upstreams

    /// Logs an exchange without a complete response. Failed logins are logged by their own log.
    func failed(_ error: ExchangeError, upstream: String, rounds: Int, id: ExchangeID?) {
        switch error.kind {
        case .callerGone, .callerNotAllowed, .login: return
        case .bodyNotReplayable, .loginTimeout, .overloaded, .requestUnfit: break
        case .upstreamProtocol, .upstreamTLS, .upstreamTimeout, .upstreamUnreachable:
            record(outageOf: upstream, error.detail)
        }
        let kind = Kind(source: upstream, isUpstream: true, message: "exchange failed", reason: error.detail)
        var details: Logger.Metadata = ["rounds": "\(rounds)"]
        let cause = "\(error.cause)"
        if !cause.isEmpty { details["cause"] = "\(cause)" }
        log(kind, .warning, id, details)
    }

    /// The upstreams that fail, by name.
    var outages: [String: UpstreamOutage] { state.withLock(\.outages) }

    /// Forgets the outages of all other upstreams.
    func keepOutages(of names: Set<String>) {
        let isAnyLeft = state.withLock { state in
            state.outages = state.outages.filter { names.contains($0.key) }
            return !state.outages.isEmpty
        }
        if !isAnyLeft { isAnyFailing.store(false, ordering: .relaxed) }
    }

    private func record(outageOf upstream: String, _ reason: String) {
        let now = wallClock()
        state.withLock { state in
            if state.outages[upstream]?.failed(at: now, reason: reason) == nil {
                state.outages[upstream] = UpstreamOutage(at: now, reason: reason)
            }
        }
        isAnyFailing.store(true, ordering: .relaxed)
    }

    /// Records an answer of an upstream. If no upstream is failing, this costs one load of a flag.
    @inline(__always)
    func answered(_ upstream: @autoclosure () -> String) {
        guard isAnyFailing.load(ordering: .relaxed) else { return }
        worksAgain(upstream())
    }

    private func worksAgain(_ upstream: String) {
        let now = wallClock()
        let (over, isAnyLeft) = state.withLock { state -> (UpstreamOutage?, Bool) in
            guard let outage = state.outages[upstream], now - outage.last >= Self.quiet || now < outage.last else {
                state.outages[upstream]?.answered()
                return (nil, true)
            }
            state.outages[upstream] = nil
            _ = state.repetitions.forget { $0.isUpstream && $0.source == upstream }
            return (outage, !state.outages.isEmpty)
        }
        guard let over else { return }
        if !isAnyLeft { isAnyFailing.store(false, ordering: .relaxed) }
        logger.notice(
            "upstream answers again",
            metadata: [
                "upstream": "\(upstream)", "failed": .stringConvertible(over.failures),
                "seconds": .stringConvertible(max(0, now - over.since) / 1000),
            ])
    }

    /// Logs a changed outcome of an upstream's check.
    func checked(_ upstream: String, _ reading: CheckReading) {
        switch reading.state {
        case .down(let reason):
            logger.warning("upstream check failed", metadata: ["upstream": "\(upstream)", "reason": "\(reason)"])
        case .unknown(let reason):
            logger.notice("upstream not checked", metadata: ["upstream": "\(upstream)", "reason": "\(reason)"])
        case .up:
            logger.notice("upstream check passed", metadata: ["upstream": "\(upstream)"])
        }
    }

    // MARK: Listeners

    /// Logs a local reply. `isRefusal`: the listener refused the request before an exchange began.
    func replied(_ reply: LocalReply, listener: String, isRefusal: Bool, id: ExchangeID) {
        if isRefusal {
            let kind = Kind(source: listener, isUpstream: false, message: "request refused", reason: reply.detail)
            log(kind, .notice, id, ["code": "\(reply.code.rawValue)", "status": .stringConvertible(reply.status)])
        }
        // At debug level, all of them, so that an identifier reported by a caller can be found.
        guard logger.logLevel <= .debug else { return }
        logger.debug(
            "local reply",
            metadata: [
                "exchange_id": "\(id)", "listener": "\(listener)", "code": "\(reply.code.rawValue)",
                "reason": "\(reply.detail)",
            ])
    }

    /// Logs a problem of a listener that does not belong to a single request.
    func problem(_ message: String, at listener: String, _ reason: String) {
        log(Kind(source: listener, isUpstream: false, message: message, reason: reason), .warning, nil, [:])
    }

    private func log(_ kind: Kind, _ level: Logger.Level, _ id: ExchangeID?, _ more: Logger.Metadata) {
        guard state.withLock({ $0.repetitions.happened(kind, now: wallClock()) }) else { return }
        var metadata = Self.metadata(kind).merging(more) { $1 }
        if let id { metadata["exchange_id"] = "\(id)" }
        logger.log(level: level, "\(kind.message)", metadata: metadata)
    }

    /// Writes the counts of repeated messages that are due; with `all`, every count.
    func logRepetitions(all: Bool = false) {
        for held in state.withLock({ $0.repetitions.due(now: wallClock(), all: all) }) {
            var metadata = Self.metadata(held.kind)
            metadata["count"] = .stringConvertible(held.count)
            metadata["seconds"] = .stringConvertible(held.seconds)
            logger.log(
                level: held.kind.isUpstream ? .warning : .notice, "\(held.kind.message) again", metadata: metadata)
        }
    }

    private static func metadata(_ kind: Kind) -> Logger.Metadata {
        [kind.isUpstream ? "upstream" : "listener": "\(kind.source)", "reason": "\(kind.reason)"]
    }
}

/// The measurements of one exchange under way, kept in the connection.
struct ExchangeTally {
    /// True if an exchange is being measured.
    private(set) var isOpen = false
    /// The start of the loop turn in which the head was read.
    private var begun = LoopInstant(nanoseconds: 0)
    /// The time from then until the transfer was set up, in nanoseconds.
    private var ahead: UInt64 = 0
    /// The status of the response to the caller; 0 before there is one.
    var status = 0
    /// True if the response is complete.
    var isWhole = false
    /// True if the upstream broke the response off.
    var isBroken = false
    /// True if the response is a local reply.
    var isLocal = false

    /// Begins an exchange in the loop turn that began at `now`.
    mutating func begin(at now: LoopInstant) {
        self = ExchangeTally()
        isOpen = true
        begun = now
    }

    /// Records that the upstream has the request, or that the exchange waits for its login.
    mutating func handedOver(by loop: EventLoop) {
        guard isOpen else { return }
        ahead = loop.readNow().nanoseconds(since: begun)
    }

    /// Ends the exchange in the present turn of `loop`, and counts it.
    mutating func end(in loop: EventLoop, to meter: UpstreamMeter) {
        guard isOpen else { return }
        isOpen = false
        let end: UpstreamMeter.End =
            if isLocal { .localReply } else if isBroken { .broken(status: status) } else if isWhole {
                .response(status: status)
            } else { .callerLost }
        let clock = loop.readNow()
        let whole = clock.nanoseconds(since: begun)
        meter.ended(end, whole: whole, own: min(whole, ahead &+ clock.nanoseconds(since: loop.now)))
    }
}

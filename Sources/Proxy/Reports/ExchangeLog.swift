// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Logging
internal import Synchronization

/// What is logged of exchanges: that something fails, that it goes on failing, that it works again. Not a line per request.
final class ExchangeLog: Sendable {
    /// What is told apart.
    private struct Kind: Hashable {
        /// The upstream, or the listener.
        var source: String
        var isUpstream: Bool
        var message: String
        var reason: String
    }

    /// An upstream that fails.
    private struct Outage {
        var since: Int64
        var last: Int64
        var count: Int
    }

    private struct State {
        var repetitions = Repetitions<Kind>()
        var outages: [String: Outage] = [:]
    }

    /// An upstream works again when so much time has gone by since its last failure, in milliseconds: else one that fails now
    /// and then would be told again and again.
    static let quiet: Int64 = 5_000

    private let logger: Logger
    private let wallClock: @Sendable () -> Int64
    private let state = Mutex(State())
    private let isAnyFailing = Atomic<Bool>(false)

    /// A log that writes to `logger`; `wallClock` tells milliseconds since 1970.
    init(logger: Logger, wallClock: @escaping @Sendable () -> Int64) {
        self.logger = logger
        self.wallClock = wallClock
    }

    // MARK: Upstreams

    /// An exchange has got no response, or half of one. What comes of logins is told where they end.
    func failed(_ error: ExchangeError, upstream: String, rounds: Int, id: ExchangeID?) {
        switch error.kind {
        case .callerGone, .callerNotAllowed, .login: return
        case .bodyNotReplayable, .loginTimeout, .overloaded: break
        case .upstreamProtocol, .upstreamTLS, .upstreamTimeout, .upstreamUnreachable: note(outageOf: upstream)
        }
        let kind = Kind(source: upstream, isUpstream: true, message: "exchange failed", reason: error.detail)
        tell(kind, .warning, id, ["cause": "\(error.cause)", "rounds": "\(rounds)"])
    }

    private func note(outageOf upstream: String) {
        let now = wallClock()
        state.withLock { state in
            state.outages[upstream, default: Outage(since: now, last: now, count: 0)].last = now
            state.outages[upstream]?.count += 1
        }
        isAnyFailing.store(true, ordering: .relaxed)
    }

    /// An upstream has answered. One look at a flag where none fails.
    @inline(__always)
    func answered(_ upstream: @autoclosure () -> String) {
        guard isAnyFailing.load(ordering: .relaxed) else { return }
        worksAgain(upstream())
    }

    private func worksAgain(_ upstream: String) {
        let now = wallClock()
        let (over, isAnyLeft) = state.withLock { state -> (Outage?, Bool) in
            guard let outage = state.outages[upstream], now - outage.last >= Self.quiet || now < outage.last else {
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
                "upstream": "\(upstream)", "failed": .stringConvertible(over.count),
                "seconds": .stringConvertible(max(0, now - over.since) / 1000),
            ])
    }

    /// What was asked of an upstream has another outcome than the time before.
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

    /// A request was answered by us; `listener` has refused it where no exchange has begun.
    func replied(_ reply: LocalReply, listener: String, isRefusal: Bool, id: ExchangeID) {
        if isRefusal {
            let kind = Kind(source: listener, isUpstream: false, message: "request refused", reason: reply.detail)
            tell(kind, .notice, id, ["code": "\(reply.code.rawValue)", "status": .stringConvertible(reply.status)])
        }
        // All of them, for who asks for it: an id that a caller was told can be found.
        guard logger.logLevel <= .debug else { return }
        logger.debug(
            "local reply",
            metadata: [
                "exchange_id": "\(id)", "listener": "\(listener)", "code": "\(reply.code.rawValue)",
                "reason": "\(reply.detail)",
            ])
    }

    /// Something is wrong at a listener, apart from any one request.
    func trouble(_ message: String, at listener: String, _ reason: String) {
        tell(Kind(source: listener, isUpstream: false, message: message, reason: reason), .warning, nil, [:])
    }

    private func tell(_ kind: Kind, _ level: Logger.Level, _ id: ExchangeID?, _ more: Logger.Metadata) {
        guard state.withLock({ $0.repetitions.happened(kind, now: wallClock()) }) else { return }
        var metadata = Self.metadata(kind).merging(more) { $1 }
        if let id { metadata["exchange_id"] = "\(id)" }
        logger.log(level: level, "\(kind.message)", metadata: metadata)
    }

    /// Writes how often what was told has happened since, where that is due; `all`: wherever it has happened.
    func tellRepetitions(all: Bool = false) {
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

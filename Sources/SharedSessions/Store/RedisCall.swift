// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
internal import Redis

/// A call of `RedisScript` with the keys and arguments of one request.
struct RedisCall {
    /// Most bytes of a request; a session has far fewer.
    static let maxBytes = 1 << 20

    private let tail: [Command.Argument]

    private init(_ plan: RedisStorePlan, name: String, _ operation: StaticString, _ rest: [Command.Argument]) {
        let keys = [
            plan.name("state", name), plan.name("session", name), plan.name("latches"), plan.name("latch-order"),
            plan.name("latch-count"), plan.name("used-codes"), plan.name("turn", StoreName.account(of: name)),
        ]
        let channels = [plan.eventChannel(of: name), plan.attemptChannel]
        tail =
            [.init(String(RedisScript.keyCount))] + keys.map { .init($0) }
            + [.init("\(operation)")] + channels.map { .init($0) } + rest
    }

    /// True if the call is too long to be sent.
    var isTooLong: Bool { tail.reduce(0) { $0 + $1.bytes.count } > Self.maxBytes }

    /// The call by the script's digest, which the session store knows after its first run.
    var short: Command { Command(["EVALSHA", .init(RedisScript.digest)] + tail) }

    /// The call with the whole script.
    var full: Command { Command(["EVAL", .init(RedisScript.text)] + tail) }

    /// The call of a request about a session. `now` is this node's time, in milliseconds since 1970.
    init(_ request: StoreRequest, for name: String, _ plan: RedisStorePlan, now: Int64) {
        switch request {
        case .acquire(let after, let token, let lifetime):
            self.init(plan, name: name, "acquire", [.init(number: after), .init(token.text), .init(lifetime)])
        case .extend(let token, let generation, let lifetime):
            self.init(plan, name: name, "extend", [.init(token.text), .init(number: generation), .init(lifetime)])
        case .publish(let token, let generation, let session, let lifetime):
            self.init(
                plan, name: name, "publish",
                [.init(token.text), .init(number: generation), .init(session), .init(lifetime)])
        case .fail(let token, let generation, let failure, let pause, let longestPause, let latches):
            self.init(
                plan, name: name, "fail",
                [.init(token.text), .init(number: generation), .init(failure), .init(pause), .init(longestPause)]
                    + latches.flatMap { Self.arguments($0, now: now) })
        case .offer(let after, let session, let lifetime):
            self.init(plan, name: name, "offer", [.init(number: after), .init(session), .init(lifetime)])
        case .fetch(let after):
            self.init(plan, name: name, "fetch", [.init(number: after)])
        case .drop(let generation):
            self.init(plan, name: name, "drop", [.init(number: generation)])
        }
    }

    /// Returns the call that reads latches and used codes.
    static func readAttempts(_ plan: RedisStorePlan) -> RedisCall { RedisCall(plan, name: "", "read", []) }

    /// Returns the call that closes latches; `nil` if all of them have opened by now.
    static func closeLatches(_ latches: [SharedLatch], _ plan: RedisStorePlan, now: Int64) -> RedisCall? {
        let arguments = latches.flatMap { Self.arguments($0, now: now) }
        return arguments.isEmpty ? nil : RedisCall(plan, name: "", "close", arguments)
    }

    static func openLatches(of challenge: String, _ plan: RedisStorePlan) -> RedisCall {
        RedisCall(plan, name: "", "open", [.init(challenge)])
    }

    /// Returns the call that marks codes as used. Ends of steps are absolute, as all nodes' clocks must agree on them anyway.
    static func markUsed(_ codes: UsedCodes, _ plan: RedisStorePlan) -> RedisCall {
        RedisCall(plan, name: "", "use", codes.ends.flatMap { [.init($0.key), .init($0.value)] })
    }

    /// Returns digest, challenge, reason, age, and remaining time (empty: until the latch is opened by an operator).
    private static func arguments(_ latch: SharedLatch, now: Int64) -> [Command.Argument] {
        let left = latch.latch.opensAt.map { $0.saturatingSubtract(now) }
        if let left, left <= 0 { return [] }
        let age = max(0, now.saturatingSubtract(latch.latch.closedAt))
        return [
            .init(latch.digest), .init(latch.challenge), .init(latch.latch.reason.rawValue),
            .init(min(age, longest)), left.map { .init(min($0, longest)) } ?? "",
        ]
    }
}

/// Longest duration in a request, in milliseconds: 300 days. The session store keeps the count of leases longer.
private let longest: Int64 = 300 * 86_400_000

extension Command.Argument {
    /// A generation, at most the largest number that Lua represents exactly.
    fileprivate init(number: UInt64) { self.init(String(min(number, 1 << 52))) }

    /// Milliseconds, rounded up.
    fileprivate init(_ duration: Duration) {
        self.init(min(duration.millisecondsRoundedUp, longest))
    }
}

/// Interprets the replies of `RedisScript`; `nil` for anything that it never returns.
enum RedisAnswer {
    /// Returns the reply to a request about a session.
    static func reply(_ reply: Reply) -> StoreReply? {
        guard let parts = reply.elements, let word = parts.first?.text else { return nil }
        switch (word, parts.count) {
        case ("granted", 3):
            guard let generation = number(parts[1]), let count = number(parts[2]) else { return nil }
            return .granted(generation: generation, latches: count)
        case ("wait", 2): return span(parts[1]).map { .wait(.milliseconds($0)) }
        case ("session", 3):
            guard let generation = number(parts[1]), let bytes = parts[2].bytes else { return nil }
            return .session(generation: generation, bytes)
        case ("failed", 3):
            guard let bytes = parts[1].bytes, let rest = span(parts[2]) else { return nil }
            return .failed(bytes, for: .milliseconds(rest))
        case ("done", 2): return number(parts[1]).map { .done(generation: $0) }
        case ("stale", 1): return .stale
        case ("nothing", 1): return .nothing
        default: return nil
        }
    }

    /// Returns latches and used codes; `now` is this node's time, in milliseconds since 1970.
    ///
    /// An entry that cannot be read invalidates all: it must not count as an open latch.
    static func attempts(_ reply: Reply, now: Int64) -> SharedAttempts? {
        guard let parts = reply.elements, parts.count == 3, let count = number(parts[0]),
            let latches = parts[1].elements.flatMap({ Self.latches($0, now: now) }),
            let codes = parts[2].elements.flatMap(usedCodes)
        else { return nil }
        return SharedAttempts(count: count, latches: latches, usedCodes: codes)
    }

    private static func latches(_ found: [Reply], now: Int64) -> [SharedLatch]? {
        guard found.count.isMultiple(of: 5) else { return nil }
        var latches: [SharedLatch] = []
        for start in stride(from: 0, to: found.count, by: 5) {
            guard let digest = found[start].text, let challenge = found[start + 1].text,
                let reason = found[start + 2].text.flatMap(Latch.Reason.init(rawValue:)),
                let age = span(found[start + 3])
            else { return nil }
            var latch = Latch(reason: reason, closedAt: now.saturatingSubtract(age))
            if found[start + 4] != .string([]) {
                guard let left = span(found[start + 4]) else { return nil }
                latch.opensAt = now.saturatingAdd(left)
            }
            latches.append(SharedLatch(digest: digest, challenge: challenge, latch: latch))
        }
        return latches
    }

    private static func usedCodes(_ found: [Reply]) -> UsedCodes? {
        guard found.count.isMultiple(of: 2) else { return nil }
        var codes = UsedCodes()
        for start in stride(from: 0, to: found.count, by: 2) {
            guard let seed = found[start].text, let end = found[start + 1].text.flatMap({ Int64($0) }) else {
                return nil
            }
            codes.use(seed, stepEnding: end)
        }
        return codes
    }

    /// Returns the number of opened latches, or 0 after a change.
    static func count(_ reply: Reply) -> Int? {
        guard let parts = reply.elements, parts.count == 2, parts[0].text == "done" else { return nil }
        return number(parts[1]).flatMap(Int.init(exactly:))
    }

    /// Returns the event of a published message; `nil` for a message of another program.
    static func event(_ reply: Reply, _ plan: RedisStorePlan) -> StoreEvent? {
        guard let parts = reply.elements, parts.count == 3, parts[0].text == "message", let channel = parts[1].text,
            let number = parts[2].text.flatMap({ UInt64($0) })
        else { return nil }
        if channel == plan.attemptChannel { return .attemptsChanged(count: number) }
        let prefix = plan.eventChannel(of: "") + ":"
        return channel.hasPrefix(prefix)
            ? .sessionChanged(name: String(channel.dropFirst(prefix.count)), generation: number) : nil
    }

    /// Longest duration in a reply, in milliseconds: ten years. No sum with it overflows.
    private static let longestSpan: UInt64 = 10 * 366 * 86_400_000

    private static func span(_ reply: Reply) -> Int64? { number(reply).map { Int64(clamping: min($0, longestSpan)) } }

    private static func number(_ reply: Reply) -> UInt64? { reply.number.flatMap(UInt64.init(exactly:)) }
}

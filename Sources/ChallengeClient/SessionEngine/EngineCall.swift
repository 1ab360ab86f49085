// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Redis

/// A request as `EngineScript` is given it.
struct EngineCall {
    /// The most bytes of a request; a session has far fewer.
    static let mostBytes = 1 << 20

    private let tail: [Command.Argument]

    private init(_ plan: RedisEnginePlan, name: String, _ operation: StaticString, _ rest: [Command.Argument]) {
        let keys = [
            plan.name("state", name), plan.name("session", name), plan.name("latches"), plan.name("latch-order"),
            plan.name("latch-count"),
        ]
        let channels = [plan.newsChannel(of: name), plan.latchChannel]
        tail =
            [.init(String(EngineScript.keyCount))] + keys.map { .init($0) }
            + [.init("\(operation)")] + channels.map { .init($0) } + rest
    }

    /// True if it is more than anybody needs, and is not sent.
    var isTooLong: Bool { tail.reduce(0) { $0 + $1.bytes.count } > Self.mostBytes }

    /// By the script's name, which the engine knows if it has run it before.
    var short: Command { Command(["EVALSHA", .init(EngineScript.digest)] + tail) }

    /// With the whole script.
    var full: Command { Command(["EVAL", .init(EngineScript.text)] + tail) }

    /// What a request about a session is; `now` is this host's time, in milliseconds since 1970.
    init(_ request: EngineRequest, for name: String, _ plan: RedisEnginePlan, now: Int64) {
        switch request {
        case .acquire(let after, let token, let life):
            self.init(plan, name: name, "acquire", [.init(number: after), .init(token.text), .init(life)])
        case .extend(let token, let generation, let life):
            self.init(plan, name: name, "extend", [.init(token.text), .init(number: generation), .init(life)])
        case .publish(let token, let generation, let session, let life):
            self.init(
                plan, name: name, "publish",
                [.init(token.text), .init(number: generation), .init(session), .init(life)])
        case .fail(let token, let generation, let failure, let pause, let longest, let latches):
            self.init(
                plan, name: name, "fail",
                [.init(token.text), .init(number: generation), .init(failure), .init(pause), .init(longest)]
                    + latches.flatMap { Self.arguments($0, now: now) })
        case .offer(let after, let session, let life):
            self.init(plan, name: name, "offer", [.init(number: after), .init(session), .init(life)])
        case .fetch(let after):
            self.init(plan, name: name, "fetch", [.init(number: after)])
        case .drop(let generation):
            self.init(plan, name: name, "drop", [.init(number: generation)])
        }
    }

    /// Asks for all latches.
    static func latches(_ plan: RedisEnginePlan) -> EngineCall { EngineCall(plan, name: "", "latches", []) }

    /// Closes latches; `nil` where there are none that are still closed.
    static func close(_ latches: [SharedLatch], _ plan: RedisEnginePlan, now: Int64) -> EngineCall? {
        let arguments = latches.flatMap { Self.arguments($0, now: now) }
        return arguments.isEmpty ? nil : EngineCall(plan, name: "", "close", arguments)
    }

    /// Opens the latches of a challenge.
    static func open(_ challenge: String, _ plan: RedisEnginePlan) -> EngineCall {
        EngineCall(plan, name: "", "open", [.init(challenge)])
    }

    /// Digest, challenge, reason, for how long it has been closed, for how long it will be (nothing: until somebody opens it).
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

/// What a duration may be at most, in milliseconds: 300 days, less than the engine keeps the count of leases.
private let longest: Int64 = 300 * 86_400_000

extension Command.Argument {
    /// A generation: at most what Lua's numbers can tell from the next one.
    fileprivate init(number: UInt64) { self.init(String(min(number, 1 << 52))) }

    /// Milliseconds, rounded up.
    fileprivate init(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else {
            self.init(0)
            return
        }
        guard seconds < longest / 1000 else {
            self.init(longest)
            return
        }
        self.init(seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

extension RedisEnginePlan {
    /// Where it is told what becomes of a session.
    func newsChannel(of name: String) -> String { self.name("news", name) }
    /// Where it is told that latches have changed.
    var latchChannel: String { name("latch-news") }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Redis

/// What the replies of `EngineScript` mean; `nil`: nothing that it says.
enum EngineAnswer {
    /// The answer to a request about a session.
    static func reply(_ reply: Reply) -> EngineReply? {
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

    /// The latches; `now` is this host's time, in milliseconds since 1970. One that is not understood counts for all: it must not be
    /// taken for an open one.
    static func latches(_ reply: Reply, now: Int64) -> (count: UInt64, latches: [SharedLatch])? {
        guard let parts = reply.elements, parts.count == 2, let count = number(parts[0]),
            let found = parts[1].elements, found.count.isMultiple(of: 5)
        else { return nil }
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
        return (count, latches)
    }

    /// How many latches were opened, or that they were closed.
    static func count(_ reply: Reply) -> Int? {
        guard let parts = reply.elements, parts.count == 2, parts[0].text == "done" else { return nil }
        return number(parts[1]).flatMap(Int.init(exactly:))
    }

    /// What is told unasked; `nil` for anything else.
    static func news(_ reply: Reply, _ plan: RedisEnginePlan) -> EngineNews? {
        guard let parts = reply.elements, parts.count == 3, parts[0].text == "message", let channel = parts[1].text,
            let number = parts[2].text.flatMap({ UInt64($0) })
        else { return nil }
        if channel == plan.latchChannel { return .latches(count: number) }
        let prefix = plan.name("news") + ":"
        return channel.hasPrefix(prefix)
            ? .session(name: String(channel.dropFirst(prefix.count)), generation: number) : nil
    }

    /// What an engine names of time is cut at ten years, in milliseconds: no sum with it is anywhere near the end of numbers.
    private static let longestSpan: UInt64 = 10 * 366 * 86_400_000

    private static func span(_ reply: Reply) -> Int64? { number(reply).map { Int64(clamping: min($0, longestSpan)) } }

    private static func number(_ reply: Reply) -> UInt64? { reply.number.flatMap(UInt64.init(exactly:)) }
}

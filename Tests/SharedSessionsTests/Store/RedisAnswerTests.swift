// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Redis
import Testing

@testable import SharedSessions

@Suite("The replies of a session store as values")
struct RedisAnswerTests {
    private static let now: Int64 = 1_700_000_000_000
    private static let tenYears: Int64 = 10 * 366 * 86_400_000

    private func text(_ text: String) -> Reply { .string(Array(text.utf8)) }

    private func closed(age: Reply, left: Reply) -> Latch? {
        RedisAnswer.attempts(
            .array([.integer(1), .array([text("d"), text("c"), text("rejected"), age, left]), .array([])]),
            now: Self.now)?
            .latches.first?.latch
    }

    @Test("ages and waits are cut at ten years, so that no sum with them ends the process or opens a latch")
    func spans() throws {
        for number in [Int64.max, .max - Self.now, Self.tenYears + 1] {
            let latch = try #require(closed(age: .integer(number), left: .integer(number)))
            #expect(latch.closedAt == Self.now - Self.tenYears)
            #expect(latch.opensAt == Self.now + Self.tenYears)
            #expect(
                RedisAnswer.reply(.array([text("wait"), .integer(number)])) == .wait(.milliseconds(Self.tenYears)))
            #expect(
                RedisAnswer.reply(.array([text("failed"), text("f"), .integer(number)]))
                    == .failed([0x66], for: .milliseconds(Self.tenYears)))
        }
        let latch = try #require(closed(age: .integer(1000), left: .integer(5000)))
        #expect(latch.closedAt == Self.now - 1000 && latch.opensAt == Self.now + 5000)
        for now in [Int64.min, .max] {
            let told = RedisAnswer.attempts(
                .array([
                    .integer(1), .array([text("d"), text("c"), text("locked"), .integer(.max), .integer(.max)]),
                    .array([]),
                ]), now: now)
            #expect(told?.latches.first?.latch.opensAt ?? .min >= now)
        }
    }

    @Test("a latch with an unreadable number makes all latches unknown, and opens none")
    func unreadable() {
        for strange: Reply in [.integer(-1), .integer(.min), .null, text("x"), text("5")] {
            #expect(closed(age: strange, left: .integer(1)) == nil)
            #expect(closed(age: .integer(1), left: strange) == nil)
        }
    }

    @Test("a used code with an unreadable end makes all records unknown")
    func unreadableCode() {
        func codes(_ parts: Reply...) -> UsedCodes? {
            RedisAnswer.attempts(.array([.integer(1), .array([]), .array(parts)]), now: Self.now)?.usedCodes
        }
        #expect(codes(text("seed"), text("1700000030000")) == UsedCodes(ends: ["seed": 1_700_000_030_000]))
        for strange: Reply in [.integer(5), .null, text("1e3"), text("9223372036854775808"), text("")] {
            #expect(codes(text("seed"), strange) == nil)
        }
        #expect(codes(text("seed")) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import Testing

@testable import ChallengeClient

@Suite("Counted logins")
struct LoginMeterTests {
    private struct Nobody: LoginObserver {
        func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
        func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
        func loginEnded(
            _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
        ) {}
    }

    private let meter = LoginMeter(next: Nobody())
    private let key = SessionKey(origin: Origin(scheme: .https, host: "a"), challenge: "corp", credential: "ann")
    private let field = InjectedField(name: .authorization, value: Secret("x"))
    private let rejected = LoginFailure(.rejected, challenge: "corp", detail: "")

    private var unverified: Session {
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        return Session(
            unverified: CredentialUse(key: latch, credential: Credential(name: "ann", fields: [:])), fields: [field])
    }

    private func run(_ result: Result<Session, LoginFailure>, steps: Int = 1) {
        meter.loginBegan(key, LoginCause(.request))
        for _ in 0..<steps { meter.loginStepped(key, ConversationStep(challenge: "corp", text: "step")) }
        meter.loginEnded(key, result, LoginCause(.request), after: .zero)
    }

    /// Counts by outcome; an established session counts as "succeeded".
    private var counts: [String: UInt64] {
        Dictionary(
            meter.reading.counts.map { ($0.key.failure?.rawValue ?? "succeeded", $0.value) },
            uniquingKeysWith: { $0 + $1 })
    }

    @Test("an unverified session counts as a login when a server accepts it, and once")
    func accepted() {
        run(.success(unverified), steps: 0)
        #expect(counts.isEmpty)
        meter.sessionAccepted(key)
        meter.sessionAccepted(key)
        #expect(counts == ["succeeded": 1])
    }

    @Test("logins with a value that a server has accepted already count once, until another value or a failure")
    func repeated() {
        for _ in 0..<5 {
            run(.success(unverified))
            meter.sessionAccepted(key)
        }
        #expect(counts == ["succeeded": 1])
        run(.failure(rejected))
        run(.success(unverified))
        meter.sessionAccepted(key)
        #expect(counts == ["succeeded": 2, "login-rejected": 1])
    }

    @Test("a step in which nobody is asked makes no login")
    func remark() {
        meter.loginBegan(key, LoginCause(.request))
        meter.loginStepped(key, ConversationStep(challenge: "corp", text: "a signature", kind: .remark))
        meter.loginEnded(key, .success(Session(fields: [field])), LoginCause(.request), after: .zero)
        #expect(counts.isEmpty)
    }

    @Test("an unverified session that is refused counts as a rejection, and never as a login")
    func refused() {
        run(.success(unverified), steps: 0)
        meter.loginEnded(key, .failure(rejected), LoginCause(.request), after: .zero)
        #expect(counts == ["login-rejected": 1])
        // The refusal of a session that has served before is not a login.
        meter.loginEnded(key, .failure(rejected), LoginCause(.request), after: .zero)
        #expect(counts == ["login-rejected": 1])
    }

    @Test("a login that was asked for nothing, and fixed fields, count neither as success nor as failure")
    func nothingAsked() {
        run(.success(Session()))
        run(.success(Session(fields: [field])), steps: 0)
        #expect(counts.isEmpty)
        run(.success(Session(fields: [field])))
        run(.failure(rejected))
        #expect(counts == ["succeeded": 1, "login-rejected": 1])
    }
}

@Suite("The counters of an upstream")
struct UpstreamMeterTests {
    @Test("each status of three digits is counted for itself, whatever else an upstream says as one")
    func statuses() {
        let meter = UpstreamMeter(name: "bank")
        for status in [200, 200, 404, 100, 599, 600, 999, 99, -1, .max] {
            meter.ended(.response(status: status), whole: 1, own: 1)
        }
        let counts = Dictionary(uniqueKeysWithValues: meter.reading.responses.map { ($0.status, $0.count) })
        #expect(counts == [200: 2, 404: 1, 100: 1, 599: 1, UpstreamReading.otherStatus: 5])
        #expect(meter.reading.whole.count == 10)
    }

    @Test("an exchange that was cut off has no duration, and a broken response has its status")
    func cutOff() {
        let meter = UpstreamMeter(name: "bank")
        meter.ended(.callerLost, whole: 5, own: 5)
        meter.ended(.broken(status: 206), whole: 5, own: 5)
        meter.ended(.localReply, whole: 7, own: 3)
        let reading = meter.reading
        #expect(reading.lostCallers == 1 && reading.brokenResponses == 1)
        #expect(reading.responses.map(\.status) == [206])
        #expect(reading.whole.count == 1 && reading.whole.nanoseconds == 7 && reading.own.nanoseconds == 3)
    }

    @Test("the counts of two workers add up, and an earlier reading does not change")
    func sums() {
        let (one, other) = (UpstreamMeter(name: "bank"), UpstreamMeter(name: "bank"))
        one.ended(.response(status: 200), whole: 10, own: 1)
        let before = one.reading
        one.ended(.response(status: 200), whole: 10, own: 1)
        other.ended(.response(status: 200), whole: 10, own: 1)
        #expect(before.responses.map(\.count) == [1])
        var sum = one.reading
        sum.add(other.reading)
        #expect(sum.responses.map(\.count) == [3])
        #expect(sum.whole.count == 3)
    }
}

@Suite("A histogram of times")
struct LatencyHistogramTests {
    @Test("a time is counted in the first bucket whose bound is not below it, to the nanosecond")
    func bounds() {
        for (index, bound) in LatencyHistogram.bounds.enumerated() {
            #expect(LatencyHistogram.bucket(of: bound * 1000 - 1) == index)
            #expect(LatencyHistogram.bucket(of: bound * 1000) == index)
            #expect(LatencyHistogram.bucket(of: bound * 1000 + 1) == index + 1)
        }
        #expect(LatencyHistogram.bucket(of: 0) == 0)
        #expect(LatencyHistogram.bucket(of: .max) == LatencyHistogram.bounds.count)
    }

    @Test("the bounds of a histogram are 64 µs and their doubles, up to 67 s")
    func range() {
        let bounds = LatencyHistogram.bounds
        #expect(bounds.first == 64 && bounds.last == 67_108_864)
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $0 * 2 == $1 })
    }

    @Test("two histograms add up, bucket by bucket and in their sum")
    func sums() {
        var one = LatencyHistogram()
        var other = LatencyHistogram()
        for time: UInt64 in [0, 64_000, 64_001, 5_000_000, .max / 4] { one.add(time) }
        for time: UInt64 in [1, 2_000_000_000] { other.add(time) }
        var both = one
        both.add(other)
        #expect(both.count == 7)
        #expect(both.nanoseconds == one.nanoseconds + other.nanoseconds)
        #expect(both.counts.first == 3)
        #expect(zip(both.counts, zip(one.counts, other.counts)).allSatisfy { $0 == $1.0 + $1.1 })
    }
}

@Suite("The last conversations")
struct ConversationLogTests {
    private final class Counter: LoginObserver {
        let calls = Mutex(0)
        func loginBegan(_ key: SessionKey, _ cause: LoginCause) { calls.withLock { $0 += 1 } }
        func loginStepped(_ key: SessionKey, _ step: ConversationStep) { calls.withLock { $0 += 1 } }
        func loginEnded(
            _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
        ) { calls.withLock { $0 += 1 } }
        func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) { calls.withLock { $0 += 1 } }
    }

    private final class Clock: Sendable {
        private let time = Mutex<Int64>(0)
        var now: Int64 { time.withLock { $0 } }
        func advance(by milliseconds: Int64) { time.withLock { $0 += milliseconds } }
    }

    private let counter = Counter()
    private let clock = Clock()
    private let log: ConversationLog
    private let cause = LoginCause(.request)

    init() {
        let clock = clock
        log = ConversationLog(next: counter) { clock.now }
    }

    private func key(_ challenge: String) -> SessionKey {
        SessionKey(origin: Origin(scheme: .https, host: "a.example"), challenge: challenge, credential: "c")
    }

    private func run(_ challenge: String, steps: Int, failing code: LoginFailure.Code? = nil) {
        let key = key(challenge)
        log.loginBegan(key, cause)
        for number in 0..<steps {
            clock.advance(by: 5)
            log.loginStepped(key, ConversationStep(challenge: challenge, text: "step \(number)"))
        }
        let failure = code.map { LoginFailure($0, challenge: challenge, detail: "why") }
        log.loginEnded(key, failure.map { .failure($0) } ?? .success(Session()), cause, after: .milliseconds(5 * steps))
    }

    @Test("conversations are listed with steps and times, those under way first, then the latest")
    func order() {
        run("one", steps: 2)
        run("two", steps: 1, failing: .rejected)
        log.loginBegan(key("three"), cause)
        log.loginStepped(key("three"), ConversationStep(challenge: "three", text: "now"))
        let told = log.conversations
        #expect(told.map(\.key.challenge) == ["three", "two", "one"])
        #expect(told[0].took == nil && told[1].failure?.code == .rejected && told[2].took == 10)
        #expect(told[2].steps.map(\.after) == [5, 10] && told[2].steps.map(\.text) == ["step 0", "step 1"])
        log.logoutEnded(key("one"), nil)
        #expect(counter.calls.withLock { $0 } == 10)
    }

    @Test("logged conversations are bounded in number, in steps and in length")
    func bounds() {
        for number in 0..<30 { run("c\(number)", steps: 1) }
        #expect(log.conversations.count == 20)
        run("long", steps: 100)
        #expect(log.conversations[0].steps.count == 40 && log.conversations[0].omitted == 60)
        log.loginBegan(key("wide"), cause)
        log.loginStepped(key("wide"), ConversationStep(challenge: "wide", text: String(repeating: "x", count: 10_000)))
        #expect(log.conversations[0].steps[0].text.count == 300)
    }

    @Test("a conversation without a request is not logged, unless its failure differs from the previous one")
    func silent() {
        run("quiet", steps: 0)
        #expect(log.conversations.isEmpty)
        for _ in 0..<5 { run("latched", steps: 0, failing: .latched) }
        #expect(log.conversations.count == 1)
        run("latched", steps: 0, failing: .noCredential)
        #expect(log.conversations.count == 2)
    }
}

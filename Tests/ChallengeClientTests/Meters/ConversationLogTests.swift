// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Synchronization
import Testing

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

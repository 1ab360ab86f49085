// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import SharedSessions
import TestSupport
import Testing

@Suite("The driver of a lease machine")
struct LeaseContractTests {
    /// Feeds a machine any replies of a session store, valid or not, and events in any order.
    @Test(
        "a driver sends one request at a time, begins one login per grant, and finishes each request once",
        arguments: 0..<20)
    func contract(part: Int) {
        var finished = 0, begun = 0
        for seed in (part * 20)..<((part + 1) * 20) {
            var driver = Driver(seed: UInt64(seed))
            for _ in 0..<400 where driver.broken == nil { driver.step() }
            #expect(driver.broken == nil, "seed \(seed): \(driver.broken ?? "")")
            finished += driver.finished
            begun += driver.begun
        }
        #expect(finished > 500)
        #expect(begun > 200)
    }

    /// Driver that keeps its side of the contract.
    private struct Driver {
        private var random: SplitMix
        private var machine: LeaseMachine
        private var now: Int64 = 1_000
        private var isAsked = false, isReading = false, isLoggingIn = false, hasRequest = false
        private var lastToken = 0
        private var spent: Set<LeaseToken> = []
        private var token = LeaseToken("")
        private(set) var broken: String?
        private(set) var finished = 0, begun = 0

        init(seed: UInt64) {
            random = SplitMix(state: seed)
            machine = LeaseMachine(isStoreReachable: seed % 2 == 0)
        }

        mutating func step() {
            now += [0, 1, 100, 3_000, 20_000].randomElement(using: &random) ?? 0
            if isAsked, oneIn(2) { return answer() }
            if isReading, oneIn(2) {
                isReading = false
                return on(.latchesRead(oneIn(2)))
            }
            if isLoggingIn, oneIn(4) { return endLogin() }
            switch Int.random(in: 0..<9, using: &random) {
            case 0, 1: requestSession()
            case 2: on(.sessionChanged(generation: number()))
            case 3: on(oneIn(3) ? .requestCancelled : .timerFired)
            case 4: on(oneIn(2) ? .storeDisconnected : .storeConnected)
            case 5: on(.failuresForgotten)
            default:
                if let due = machine.nextDeadline {
                    now = max(now, due)
                    on(.timerFired)
                }
            }
        }

        private mutating func requestSession() {
            lastToken += 1
            if !hasRequest { token = LeaseToken("\(lastToken)") }
            hasRequest = true
            on(.sessionRequested(after: oneIn(2) ? machine.generation : number(), isRenewal: oneIn(3), token: token))
        }

        private mutating func endLogin() {
            isLoggingIn = false
            switch Int.random(in: 0..<4, using: &random) {
            case 0: on(.loginCancelled)
            case 1: on(.loginFailed([1], pause: .seconds(1), longestPause: .seconds(9), latches: []))
            case 2: on(.loginSucceeded(session: nil, lifetime: .seconds(9)))
            default: on(.loginSucceeded(session: [UInt8.random(in: 0..<9, using: &random)], lifetime: life()))
            }
        }

        private mutating func answer() {
            isAsked = false
            let reply: StoreReply? =
                switch Int.random(in: 0..<9, using: &random) {
                case 0, 1: .granted(generation: number(), latches: UInt64.random(in: 0..<2, using: &random))
                case 2: .wait(life())
                case 3: .session(generation: number(), [UInt8.random(in: 0..<9, using: &random)])
                case 4: .failed([1], for: life())
                case 5: .done(generation: number())
                case 6: .stale
                case 7: .nothing
                default: nil
                }
            on(.replyReceived(reply, latches: 0))
        }

        private mutating func on(_ event: LeaseMachine.Event) {
            for action in machine.handle(event, now: now, random: Double.random(in: 0..<1, using: &random)) {
                switch action {
                case .send(let request):
                    if isAsked { broken = "asks twice at once" }
                    isAsked = true
                    if case .acquire(_, let token, _) = request, spent.contains(token) {
                        broken = "asks with a spent token"
                    }
                case .readLatches: isReading = true
                case .beginLogin:
                    if isLoggingIn || !hasRequest { broken = "begins a login that nobody asked for" }
                    if !spent.insert(token).inserted { broken = "begins twice with one token" }
                    isLoggingIn = true
                    begun += 1
                case .finish:
                    if !hasRequest || isLoggingIn { broken = "finishes what was not wanted, after \(event)" }
                    hasRequest = false
                    isReading = false
                    finished += 1
                case .adoptSession, .dropSession: if hasRequest { broken = "takes or drops while a session is wanted" }
                }
            }
            if hasRequest != machine.hasRequest { broken = "does not say whether it wants, after \(event)" }
            if let due = machine.nextDeadline, due < now - 1, !isAsked { broken = "is due at \(due), and it is \(now)" }
        }

        private mutating func oneIn(_ of: Int) -> Bool { Int.random(in: 0..<of, using: &random) == 0 }

        private mutating func number() -> UInt64 { [0, 1, 2, 5, 9, .max].randomElement(using: &random) ?? 0 }

        private mutating func life() -> Duration {
            [.zero, .seconds(1), .seconds(60), .seconds(Int64.max), .seconds(-5)].randomElement(using: &random) ?? .zero
        }
    }
}

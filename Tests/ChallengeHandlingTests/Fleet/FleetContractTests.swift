// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@Suite("What drives a host of a fleet")
struct FleetContractTests {
    /// Whatever an engine says, sensible or not, and whatever happens in whatever order.
    @Test(
        "is asked for one thing at a time, begins one login per grant, and is told the end of each want once",
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

    /// A driver that keeps its side of the contract.
    private struct Driver {
        private var random: SplitMix
        private var machine: FleetMachine
        private var now: Int64 = 1_000
        private var isAsked = false, isReading = false, isLoggingIn = false, isWanting = false
        private var lastToken = 0
        private var spent: Set<LeaseToken> = []
        private var token = LeaseToken("")
        private(set) var broken: String?
        private(set) var finished = 0, begun = 0

        init(seed: UInt64) {
            random = SplitMix(state: seed)
            machine = FleetMachine(isEngineThere: seed % 2 == 0)
        }

        mutating func step() {
            now += [0, 1, 100, 3_000, 20_000].randomElement(using: &random) ?? 0
            if isAsked, chance(2) { return answer() }
            if isReading, chance(2) {
                isReading = false
                return on(.latchesRead(chance(2)))
            }
            if isLoggingIn, chance(4) { return endLogin() }
            switch Int.random(in: 0..<9, using: &random) {
            case 0, 1: want()
            case 2: on(.told(generation: number()))
            case 3: on(chance(3) ? .giveUp : .timer)
            case 4: on(chance(2) ? .away : .connected)
            case 5: on(.forget)
            default:
                if let due = machine.due {
                    now = max(now, due)
                    on(.timer)
                }
            }
        }

        private mutating func want() {
            lastToken += 1
            if !isWanting { token = LeaseToken("\(lastToken)") }
            isWanting = true
            on(.want(after: chance(2) ? machine.present : number(), isRenewal: chance(3), token: token))
        }

        private mutating func endLogin() {
            isLoggingIn = false
            switch Int.random(in: 0..<4, using: &random) {
            case 0: on(.cancelled)
            case 1: on(.failed([1], pause: .seconds(1), longest: .seconds(9), latches: []))
            case 2: on(.won(session: nil, life: .seconds(9)))
            default: on(.won(session: [UInt8.random(in: 0..<9, using: &random)], life: life()))
            }
        }

        private mutating func answer() {
            isAsked = false
            let reply: EngineReply? =
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
            on(.answered(reply, latches: 0))
        }

        private mutating func on(_ event: FleetMachine.Event) {
            for action in machine.handle(event, now: now, chance: Double.random(in: 0..<1, using: &random)) {
                switch action {
                case .ask(let request):
                    if isAsked { broken = "asks twice at once" }
                    isAsked = true
                    if case .acquire(_, let token, _) = request, spent.contains(token) {
                        broken = "asks with a spent token"
                    }
                case .readLatches: isReading = true
                case .begin:
                    if isLoggingIn || !isWanting { broken = "begins a login that nobody asked for" }
                    if !spent.insert(token).inserted { broken = "begins twice with one token" }
                    isLoggingIn = true
                    begun += 1
                case .finish:
                    if !isWanting || isLoggingIn { broken = "finishes what was not wanted, after \(event)" }
                    isWanting = false
                    isReading = false
                    finished += 1
                case .adopt, .drop: if isWanting { broken = "takes or drops while a session is wanted" }
                }
            }
            if isWanting != machine.isWanting { broken = "does not say whether it wants, after \(event)" }
            if let due = machine.due, due < now - 1, !isAsked { broken = "is due at \(due), and it is \(now)" }
        }

        private mutating func chance(_ of: Int) -> Bool { Int.random(in: 0..<of, using: &random) == 0 }

        private mutating func number() -> UInt64 { [0, 1, 2, 5, 9, .max].randomElement(using: &random) ?? 0 }

        private mutating func life() -> Duration {
            [.zero, .seconds(1), .seconds(60), .seconds(Int64.max), .seconds(-5)].randomElement(using: &random) ?? .zero
        }
    }
}

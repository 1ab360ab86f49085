// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// A bounded run of one language, which prints what it has done.
struct Run {
    private static let batch: UInt64 = 1_024

    private let grammar: Grammar
    private let isThorough: Bool

    init(_ grammar: Grammar, isThorough: Bool) {
        self.grammar = grammar
        self.isThorough = isThorough
    }

    /// Returns false where a sentence was not read as what it means.
    func speak(_ seeds: Range<UInt64>) -> Bool {
        do throws(Misunderstanding) {
            try grammar.speak(seeds, isThorough) { unsafe CrashReport.spoken = $0 }
            return true
        } catch {
            print("\(grammar.name): \(error.rule)")
            print("  the sentence of seed \(error.seed): \(Self.quoted(error.sentence))")
            print("  again: Tests/Fuzz/grammar \(grammar.name) --seed \(error.seed)")
            return false
        }
    }

    /// Speaks sentences until the seconds of the processor or the count are over, and prints how many it has spoken.
    func speak(from first: UInt64, seconds: UInt64, count: UInt64) -> Bool {
        let began = Self.processorTime
        var next = first
        var isRight = true
        while isRight, count == 0 || next - first < count {
            if seconds > 0, Self.processorTime - began >= Double(seconds) { break }
            let end = next + (count == 0 ? Self.batch : min(Self.batch, count - (next - first)))
            isRight = speak(next..<end)
            // Where one is wrong, only those up to it were spoken.
            next = isRight ? end : unsafe CrashReport.spoken + 1
        }
        print("spoken \(grammar.name) \(first) \(next - first) \(Self.processorTime - began)")
        // A sanitizer may end the process without that.
        fflush(nil)
        return isRight
    }

    /// Prints what a byte costs in the text that costs most, for each reader; false where one is too slow, or grows too fast.
    static func measureGrowth() -> Bool {
        var isRight = true
        for growth in Growth.all {
            let worst = growth.costs().max { $0.cost < $1.cost }
            print(
                "\(growth.name): \(Int(worst?.cost ?? 0)) ns a byte at most, of \(growth.most), by \(worst?.what ?? "nothing")"
            )
            do throws(Violation) {
                try growth.check(isTimed: true)
            } catch {
                print("  \(error)")
                isRight = false
            }
        }
        return isRight
    }

    /// Seconds of the processor that this process has had.
    private static var processorTime: Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The bytes as a literal of Swift, at most 2,000 of them.
    static func quoted(_ bytes: [UInt8]) -> String {
        var text = "\""
        for byte in bytes.prefix(2_000) {
            switch byte {
            case 0x0D: text += "\\r"
            case 0x0A: text += "\\n"
            case 0x09: text += "\\t"
            case 0x22: text += "\\\""
            case 0x5C: text += "\\\\"
            case 0x20...0x7E: text += String(UnicodeScalar(byte))
            default: text += "<\(String(byte, radix: 16))>"
            }
        }
        return text + "\" (\(bytes.count) bytes)"
    }
}

/// Says which sentence a trap, a fault or a hang came from, in a signal handler: with what is there and nothing allocated.
@safe
enum CrashReport {
    /// Seconds that no sentence takes.
    private static let longest = 10

    /// The seed of the sentence that is being read. One thread speaks in the runner.
    nonisolated(unsafe) static var spoken: UInt64 = 0
    nonisolated(unsafe) private static var text = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 200)
    nonisolated(unsafe) private static var length = 0
    /// The handlers' own; held here so that no leak is seen in it.
    nonisolated(unsafe) private static let stackMemory = UnsafeMutableRawPointer.allocate(
        byteCount: 65_536, alignment: 16)
    nonisolated(unsafe) private static var lastSeed = UInt64.max

    static func install(for name: String) {
        for byte in "\nThe process ended in \(name).\n  again: Tests/Fuzz/grammar \(name) --seed ".utf8.prefix(150) {
            unsafe text[length] = byte
            unsafe length += 1
        }
        // For the end of the stack, too, whose handler needs a stack of its own.
        var stack = unsafe stack_t(ss_sp: stackMemory, ss_flags: 0, ss_size: 65_536)
        unsafe sigaltstack(&stack, nil)
        for number in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE] {
            var action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = { _ in CrashReport.write() }
            action.sa_flags = SA_ONSTACK | Int32(bitPattern: UInt32(SA_RESETHAND))
            unsafe sigaction(number, &action, nil)
        }
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { _ in CrashReport.look() }
        action.sa_flags = SA_RESTART
        unsafe sigaction(SIGVTALRM, &action, nil)
        var interval = itimerval(
            it_interval: timeval(tv_sec: longest, tv_usec: 0), it_value: timeval(tv_sec: longest, tv_usec: 0))
        unsafe setitimer(__itimer_which_t(1), &interval, nil)
    }

    /// The time is that of the processor: a sentence that is spoken since the last look, and still is, hangs.
    private static func look() {
        if unsafe lastSeed == spoken { write() }
        unsafe lastSeed = spoken
    }

    private static func write() {
        var digits = unsafe length
        var divisor: UInt64 = 1
        while unsafe spoken / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            unsafe text[digits] = UInt8(0x30 + spoken / divisor % 10)
            digits += 1
            divisor /= 10
        }
        unsafe text[digits] = 0x0A
        unsafe Glibc.write(1, text.baseAddress, digits + 1)
        _exit(70)
    }
}

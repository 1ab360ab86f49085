// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// A reader, and texts that could make it slow: eight times the length must take eight times as long.
struct Growth: Sendable {
    /// The name of the reader's grammar.
    let name: String
    /// The length of the shorter of two texts.
    var small = 2_000
    /// Nanoseconds for a byte that no text may exceed in a release build, on a machine of today.
    let most: Int
    let read: @Sendable ([UInt8]) -> Void
    let texts: [(what: String, make: @Sendable (Int) -> [UInt8])]

    static let all = messages + texts

    /// Throws if a text of eight times the length takes more than twenty times as long, which quadratic time (64 times)
    /// exceeds by far. With `isTimed` it also throws if a byte takes too long.
    func check(isTimed: Bool) throws(Violation) {
        for (what, make) in texts {
            let (short, long) = (make(small), make(8 * small))
            var told = ""
            // Others on the machine may disturb one measurement, but hardly three.
            for _ in 0..<3 where told.isEmpty || !told.hasPrefix("+") {
                let (few, many) = (time(short), time(long))
                // Some time for work that does not depend on the length, and for the clock.
                let isLinear = many < 20 * few + 300_000
                let isFast = !isTimed || many < most * long.count + 300_000
                told =
                    isLinear && isFast ? "+" : "\(what): \(short.count) bytes \(few) ns, \(long.count) bytes \(many) ns"
            }
            try require(told == "+", told)
        }
    }

    /// Returns the nanoseconds per byte of each longest text, for a table.
    func costs() -> [(what: String, cost: Double)] {
        texts.map { what, make in
            let long = make(8 * small)
            return (what, Double(time(long)) / Double(max(long.count, 1)))
        }
    }

    /// Returns the best time of three.
    private func time(_ text: [UInt8]) -> Int {
        (0..<3).map { _ in
            let before = Self.threadTime
            read(text)
            return Self.threadTime - before
        }.min() ?? 0
    }

    /// Processor time of this thread, in nanoseconds.
    private static var threadTime: Int {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    /// `start`, as much of `text` as fits, `end`.
    static func repeated(_ text: String, from start: String = "", to end: String = "") -> @Sendable (Int) -> [UInt8] {
        { count in
            Array(
                (start + String(repeating: text, count: max(1, (count - start.utf8.count) / text.utf8.count)) + end)
                    .utf8)
        }
    }

    /// Pieces that differ by their numbers.
    static func numbered(
        from start: String = "", to end: String = "", _ piece: @escaping @Sendable (Int) -> String
    ) -> @Sendable (Int) -> [UInt8] {
        { count in
            var text = start
            var number = 0
            while text.utf8.count < count {
                text += piece(number)
                number += 1
            }
            return Array((text + end).utf8)
        }
    }
}

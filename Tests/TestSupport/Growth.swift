// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Returns true if `work` on eight times as many items takes less than twenty times as long, which quadratic time (64 times) exceeds
/// by far.
///
/// `work` gets the number of items. Processor time of this thread counts, the best of three measurements.
package func growsLinearly(from small: Int, _ work: (_ count: Int) -> Void) -> Bool {
    func time(_ count: Int) -> Int {
        (0..<3).map { _ in
            let before = threadTime()
            work(count)
            return threadTime() - before
        }.min() ?? 0
    }
    // Others on the machine may disturb one measurement, but hardly three.
    return (0..<3).contains { _ in time(8 * small) < 20 * time(small) + 300_000 }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Lets so many scenarios run at once: Swift Testing starts all tests together, and a machine of two cores would then
/// have every daemon of them wait for every other.
actor Slots {
    static let shared = Slots(free: 4)

    private var free: Int
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(free: Int) { self.free = free }

    /// Waits for a slot.
    func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiters.append($0) }
        }
    }

    /// Gives it back.
    func give() {
        if waiters.isEmpty {
            free += 1
        } else {
            waiters.removeFirst().resume()
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Lets so many scenarios run at once: Swift Testing starts all tests together, and a machine of two cores would then
/// have every daemon of them wait for every other.
actor Slots {
    private static let shared = Slots(free: 4)

    private var free: Int
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(free: Int) { self.free = free }

    /// Waits for a slot.
    private func take() async {
        if free > 0 {
            free -= 1
        } else {
            await withCheckedContinuation { waiters.append($0) }
        }
    }

    /// Gives it back.
    private func give() {
        if waiters.isEmpty {
            free += 1
        } else {
            waiters.removeFirst().resume()
        }
    }

    /// Runs a scenario in a slot.
    static func run<Value>(_ scenario: () async throws -> Value) async throws -> Value {
        await shared.take()
        do {
            let value = try await scenario()
            await shared.give()
            return value
        } catch {
            await shared.give()
            throw error
        }
    }
}

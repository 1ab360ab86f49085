// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The faults still to come, shared by all parts of the upstream.
package final class FaultPlan: Sendable {
    private let pending = Mutex<[Entry]>([])

    /// No faults.
    package init() {}

    /// Adds a fault; of several at one endpoint the earliest added strikes until it is used up.
    package func add(_ fault: Fault) {
        pending.withLock { $0.append(Entry(fault: fault)) }
    }

    /// Removes all faults.
    package func clear() {
        pending.withLock { $0.removeAll() }
    }

    /// Runs the work of an endpoint, or what a fault says instead of it.
    func apply(at endpoint: Endpoint, work: () -> FakeResponse) -> FakeResponse {
        guard let strike = strike(at: endpoint) else { return work() }
        switch strike.effect {
        case .altered(let change):
            var response = work()
            change(&response)
            return response
        case .instead(let make): return make(strike.number)
        }
    }

    private func strike(at endpoint: Endpoint) -> (effect: Fault.Effect, number: Int)? {
        pending.withLock { pending in
            for index in pending.indices {
                let fault = pending[index].fault
                guard fault.endpoint == nil || fault.endpoint == endpoint else { continue }
                pending[index].met += 1
                let number = pending[index].met - fault.skip
                guard number > 0, fault.times.map({ number <= $0 }) ?? true else { continue }
                return (fault.effect, number)
            }
            return nil
        }
    }

    private struct Entry {
        var fault: Fault
        var met = 0
    }
}

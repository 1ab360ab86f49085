// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Proxy
import Synchronization
import TestSupport

/// Stalls a worker, so that what happens meanwhile is all there when it goes on.
final class Stall: Sendable {
    /// Given when the worker stands still.
    let isThere = Signal()
    /// To be given for it to go on.
    let goesOn = Signal()
    /// Called on the worker's thread before it goes on.
    let atItsEnd = Mutex<(@Sendable () -> Void)?>(nil)
}

/// A local service that keeps its worker at a request for the path of a stall.
struct StallingService: LocalService {
    let stalls: [String: Stall]

    func answer(_ request: LocalRequest) -> LocalAnswer {
        if let stall = stalls[request.path] {
            stall.isThere.set()
            stall.goesOn.wait()
            stall.atItsEnd.withLock { $0?() }
        }
        return LocalAnswer(status: 200, contentType: "text/plain", body: [])
    }
}

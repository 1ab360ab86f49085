// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Synchronization
import Testing

@testable import SharedSessions

@Suite("Work for the session store")
struct LeaseCoordinatorHandleTests {
    @Test(
        "work that waits for the session store costs the same however much waits, and is done in order",
        .timeLimit(.minutes(1)))
    func waiting() {
        let handle = LeaseCoordinatorHandle()
        handle.beginOpening()
        let done = Mutex<[Int]>([])
        for number in 0..<200_000 { handle.execute { _ in done.withLock { $0.append(number) } } }
        #expect(done.withLock { $0.isEmpty })
        handle.close()
        #expect(done.withLock { $0 == Array(0..<200_000) })
        // Closed: at once.
        handle.execute { coordinator in done.withLock { $0 = coordinator == nil ? [] : $0 } }
        #expect(done.withLock { $0.isEmpty })
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Synchronization
import System
import TestSupport
import Testing

@testable import CountersignDaemon

@Suite("The thread for reports")
struct ReportThreadTests {
    @Test("jobs run one after the other on another thread, which ends, and begins again with the next job")
    func order() {
        let started = Mutex(0)
        let thread = ReportThread { body throws(ThreadError) in
            started.withLock { $0 += 1 }
            try startThread(body)
        }
        let numbers = Mutex<[Int]>([])
        for round in 1...3 {
            let ended = CountDownLatch(50)
            for number in 0..<50 {
                thread.execute {
                    numbers.withLock { $0.append(number) }
                    ended.countDown()
                }
            }
            #expect(ended.wait(within: .seconds(60)))
            #expect(numbers.withLock { $0 } == Array(repeating: Array(0..<50), count: round).flatMap(\.self))
        }
        #expect(started.withLock { $0 } >= 1)
    }

    @Test("without a thread to be had, the job runs at once")
    func noThread() {
        let thread = ReportThread { _ throws(ThreadError) in throw ThreadError(code: 11) }
        let count = Mutex(0)
        thread.execute { count.withLock { $0 += 1 } }
        thread.execute { count.withLock { $0 += 1 } }
        #expect(count.withLock { $0 } == 2)
    }
}

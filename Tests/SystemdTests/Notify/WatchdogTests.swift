// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Systemd

@Suite("The watchdog")
struct WatchdogTests {
    @Test("it is beaten at half the interval")
    func beat() throws {
        let watchdog = try Watchdog.expected(in: ["WATCHDOG_USEC": "30000000"], of: 7)
        #expect(watchdog?.interval == .seconds(30))
        #expect(watchdog?.beat == .seconds(15))
    }

    @Test("nobody watches without WATCHDOG_USEC")
    func absent() throws {
        #expect(try Watchdog.expected(in: ["WATCHDOG_PID": "7"], of: 7) == nil)
    }

    @Test("a watchdog of another process is not ours")
    func otherProcess() throws {
        let environment = ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"]
        #expect(try Watchdog.expected(in: environment, of: 7) == nil)
        #expect(try Watchdog.expected(in: environment, of: 8)?.interval == .milliseconds(1))
    }

    @Test("an interval beyond all measure watches nobody")
    func beyond() throws {
        #expect(try Watchdog.expected(in: ["WATCHDOG_USEC": String(UInt64.max)], of: 7) == nil)
    }

    @Test("what is no positive number is an error", arguments: ["", "0", "-1", "30s", "1.5"])
    func nonsense(value: String) {
        #expect(throws: WatchdogError(variable: "WATCHDOG_USEC", value: value)) {
            try Watchdog.expected(in: ["WATCHDOG_USEC": value], of: 7)
        }
        #expect(throws: WatchdogError(variable: "WATCHDOG_PID", value: value)) {
            try Watchdog.expected(in: ["WATCHDOG_USEC": "5", "WATCHDOG_PID": value], of: 7)
        }
    }
}

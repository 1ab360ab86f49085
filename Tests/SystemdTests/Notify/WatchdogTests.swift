// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Systemd

@Suite("The watchdog")
struct WatchdogTests {
    @Test("the watchdog is notified at half its interval")
    func beat() throws {
        let watchdog = try Watchdog.expected(in: ["WATCHDOG_USEC": "30000000"], of: 7)
        #expect(watchdog?.interval == .seconds(30))
        #expect(watchdog?.beat == .seconds(15))
    }

    @Test("without WATCHDOG_USEC there is no watchdog")
    func absent() throws {
        #expect(try Watchdog.expected(in: ["WATCHDOG_PID": "7"], of: 7) == nil)
    }

    @Test("a watchdog for another process is ignored")
    func otherProcess() throws {
        let environment = ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"]
        #expect(try Watchdog.expected(in: environment, of: 7) == nil)
        #expect(try Watchdog.expected(in: environment, of: 8)?.interval == .milliseconds(1))
    }

    @Test("a watchdog interval beyond Int64 counts as none")
    func beyond() throws {
        #expect(try Watchdog.expected(in: ["WATCHDOG_USEC": String(UInt64.max)], of: 7) == nil)
    }

    @Test("a WATCHDOG_USEC that is not a positive number is an error", arguments: ["", "0", "-1", "30s", "1.5"])
    func nonsense(value: String) {
        #expect(throws: WatchdogError(variable: "WATCHDOG_USEC", value: value)) {
            try Watchdog.expected(in: ["WATCHDOG_USEC": value], of: 7)
        }
        #expect(throws: WatchdogError(variable: "WATCHDOG_PID", value: value)) {
            try Watchdog.expected(in: ["WATCHDOG_USEC": "5", "WATCHDOG_PID": value], of: 7)
        }
    }
}

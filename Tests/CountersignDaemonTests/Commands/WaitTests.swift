// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import CountersignDaemon

/// A report with one login of `bank` that asks `pin`.
private func report(_ status: String, _ login: [String: JSONValue], reasons: [JSONValue] = []) -> JSONValue {
    let login = login.merging(["challenge": "bank", "asks": ["pin"]]) { $1 }
    return ["status": .string(status), "reasons": .array(reasons), "upstreams": ["bank": [.object(login)]]]
}

private let rejected: [String: JSONValue] = [
    "state": "failing", "code": "login-rejected", "detail": "The PIN was wrong.",
]

@Suite("The wait command")
struct WaitTests {
    @Test("a login is ready if its session is held or not needed yet, by its own name and its checks")
    func ready() {
        for (state, name) in [("held", "bank"), ("cold", "bank"), ("held", "pin"), ("cold", "pin")] {
            #expect(Readiness(of: name, in: report("not ready", ["state": .string(state)])) == .ready)
        }
        #expect(Readiness(of: nil, in: report("ready", ["state": "cold"])) == .ready)
    }

    @Test("a login that is not ready gives its own reason, not the reasons of others")
    func reasons() {
        #expect(
            Readiness(of: "pin", in: report("not ready", rejected, reasons: ["listeners: shutting down"]))
                == .notYet("bank/bank: login-rejected: The PIN was wrong."))
        #expect(
            Readiness(of: "pin", in: report("ready", ["state": "logging-in"]))
                == .notYet("bank/bank: its login is under way"))
        #expect(
            Readiness(of: nil, in: report("not ready", rejected, reasons: ["one: a", "two: b"]))
                == .notYet("one: a; two: b"))
        #expect(Readiness(of: nil, in: ["detail": "No room."]) == .notYet("No room."))
    }

    @Test("wait fails at once for an unknown login, and lists the known ones")
    func unknown() {
        let failure = #expect(throws: Failure.self) {
            try WaitCommand.wait(for: "pni", atMost: .seconds(3600)) { _ in report("ready", ["state": "held"]) }
        }
        #expect(failure?.code == EX_USAGE)
        #expect(
            failure?.description
                == "no login of the daemon has the name pni; did you mean \"pin\"?: there are bank, pin")
    }

    @Test("wait fails at once if this user may not connect to the daemon")
    func permission() {
        let failure = #expect(throws: Failure.self) {
            try WaitCommand.wait(for: nil, atMost: .seconds(3600)) { (_) throws(Failure) in
                throw Failure("this user may not connect to the daemon", code: EX_NOPERM)
            }
        }
        #expect(failure?.code == EX_NOPERM)
    }

    @Test("wait asks an unreachable daemon again until the timeout, and then gives the last reason")
    func again() {
        var asked = 0
        #expect(throws: Never.self) {
            try WaitCommand.wait(for: "pin", atMost: .seconds(60)) { (_) throws(Failure) in
                asked += 1
                guard asked > 2 else { throw Failure("it does not answer", code: EX_UNAVAILABLE) }
                return report("ready", ["state": "held"])
            }
        }
        #expect(asked == 3)
        let failure = #expect(throws: Failure.self) {
            try WaitCommand.wait(for: "pin", atMost: .milliseconds(10)) { _ in report("not ready", rejected) }
        }
        #expect(failure?.code == EX_UNAVAILABLE)
        #expect(failure?.description.hasSuffix(": bank/bank: login-rejected: The PIN was wrong.") == true)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A credential that the upstream rejects")
struct LatchTests {
    private static var wrongPIN: BankConfiguration {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        return configuration
    }

    @Test("is sent once, and then every caller is told what happened and what to do")
    func sentOnce() async throws {
        try await withBank(Self.wrongPIN) { bank in
            let first = try await bank.curl("/balance")
            #expect(first.status == 502)
            #expect(first.code == "login-rejected")
            for _ in 0..<3 {
                let later = try await bank.curl("/balance")
                #expect(later.status == 503)
                #expect(later.code == "login-latched")
                #expect(later.json?["status"] == 503)
                #expect(later.json?["challenge"] == "bank-pin")
                #expect(later.field("proxy-status")?.hasPrefix("countersign; error=") == true)
                #expect(later.field("www-authenticate") == nil)
            }
            for detail in [first.detail, try await bank.curl("/balance").detail] {
                // The credential's name, and the remedy: change it, or open the latch by hand.
                #expect(detail.contains("bank-pin"))
                #expect(detail.contains("unlatch"))
                #expect(!detail.contains("9999"))
            }
            #expect(bank.pinAnswers == 1)
            #expect(bank.record.wrongAnswers["PinCodeAttempts"] == 1)
        }
    }

    @Test("is refused in the same words by the local reply, status, doctor and explain")
    func words() async throws {
        try await withBank(Self.wrongPIN) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            let why = try await bank.curl("/balance").detail
            #expect(why.contains("rejected the credential \"bank-pin\""), "\(why)")
            #expect(try await bank.countersign("status").output.contains("latch     bank-pin: \(why)"))
            let explained = try await bank.countersign("explain", bank.url("/balance")).output
            #expect(explained.contains("refused   bank-pin: \(why)"), "\(explained)")
            let json = try await bank.countersign("explain", "--json", bank.url("/balance"))
            #expect(json.output.contains("\"refused\":"), "\(json)")
            let found = try await bank.countersign("doctor").output
            #expect(found.contains("bank-pin: \(why.prefix { $0 != "." })"), "\(found)")
        }
    }

    @Test("is not sent again after kill -9 and a restart, but is once it was changed")
    func survivesRestart() async throws {
        try await withBank(Self.wrongPIN) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            await bank.killDaemon()
            try await bank.startDaemon()
            try await bank.expect("/balance", code: "login-latched")
            #expect(bank.pinAnswers == 1)

            await bank.stopDaemon()
            bank.configure { $0.environment["COUNTERSIGN_BANK_PIN__PIN"] = "1234" }
            try await bank.startDaemon()
            try await bank.expect("/balance", status: 200)
            #expect(bank.record.answers["PinCodeAttempts"] == [["pin": "9999"], ["pin": "1234"]])
        }
    }

    @Test("is not ready from the start after a restart, and ready at once with another value")
    func notReadyAfterRestart() async throws {
        let manager = try NotifySocket()
        var configuration = Self.wrongPIN
        configuration.environment["NOTIFY_SOCKET"] = manager.path
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            await bank.killDaemon()
            try await bank.startDaemon()
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 503 && ready.text.contains("bank/bank: login-latched"), "\(ready.summary)")
            let status = try await bank.countersign("status")
            #expect(status.exit == 69 && status.output.contains("problem   bank/bank: login-latched"), "\(status)")
            #expect(try await bank.admin("/").text.contains("not ready"))
            let isTold = await eventually {
                manager.lines.contains { $0.hasPrefix("STATUS=Serving bank") && $0.contains("rejected the credential") }
            }
            #expect(isTold, "\(manager.lines)")
            #expect(try await bank.metrics().values("ready") == [0])

            await bank.stopDaemon()
            bank.configure { $0.environment["COUNTERSIGN_BANK_PIN__PIN"] = "1234" }
            try await bank.startDaemon()
            #expect(try await bank.admin("/readyz").status == 200)
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("is not ready after a restart until its helper has another value, without a request")
    func helperAfterRestart() async throws {
        let helper = try Folder()
        let program = helper.write("#!/bin/sh\ncat \"\(helper.path)/answer\"\n", to: "helper", mode: 0o700)
        helper.write("{\"fields\": {\"pin\": \"9999\"}}", to: "answer")
        var configuration = BankConfiguration()
        configuration.sources = ["exec: [\(program)]"]
        configuration.environment = ["WATCHDOG_USEC": "2000000"]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            await bank.killDaemon()
            try await bank.startDaemon()
            #expect(try await bank.admin("/readyz").status == 503)
            helper.write("{\"fields\": {\"pin\": \"1234\"}}", to: "answer")
            #expect(try await eventually { try await bank.admin("/readyz").status == 200 })
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("names its source: by its kind to callers, with its path to operators")
    func source() async throws {
        let folder = try Folder()
        let file = folder.write("COUNTERSIGN_BANK_PIN__PIN=9999\n", to: "secrets")
        var configuration = BankConfiguration()
        configuration.sources = ["env: \(file)"]
        configuration.environment = [:]
        try await withBank(configuration) { bank in
            let rejected = try await bank.expect("/balance", code: "login-rejected")
            for detail in [rejected.detail, try await bank.expect("/balance", code: "login-latched").detail] {
                #expect(
                    detail.contains("came from the environment file. Change COUNTERSIGN_BANK_PIN__PIN there"),
                    "\(detail)")
                #expect(!detail.contains(folder.path), "\(detail)")
            }
            for output in [try await bank.countersign("status").output, try await bank.countersign("doctor").output] {
                #expect(output.contains("the environment file \(file)"), "\(output)")
            }
            #expect(try bank.daemon.log.contains("The value came from the environment file \(file)."))
        }
    }

    @Test("is told to be only in memory if the disk refuses it, and is stored as soon as that is possible")
    func unwritten() async throws {
        try await withBank(Self.wrongPIN) { bank in
            #expect(try await bank.metrics().values("state_unwritten") == [0])
            bank.folder.makeFolder("state/latches.sealed")
            try await bank.expect("/balance", code: "login-rejected")
            let words = "a rejected credential is remembered only in memory, because \(bank.folder.path(of: "state"))"
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 503 && ready.text.contains("state: \(words)"), "\(ready.summary)")
            let status = try await bank.countersign("status").output
            #expect(status.contains("state     \(words)") && status.contains("after a restart it would be sent again"))
            #expect(try await bank.countersign("doctor").output.contains("the daemon: \(words)"))
            #expect(try await bank.metrics().sum("state_unwritten") >= 1)
            #expect(try bank.daemon.log.contains("state is only in memory"))
            remove(bank.folder.path(of: "state/latches.sealed"))
            #expect(try await eventually { try await bank.metrics().values("state_unwritten") == [0] })
            #expect(try await !bank.admin("/readyz").text.contains("only in memory"))
            await bank.killDaemon()
            try await bank.startDaemon()
            try await bank.expect("/balance", code: "login-latched")
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("is tried again as soon as the file in $CREDENTIALS_DIRECTORY holds another, without a restart")
    func credentialsDirectory() async throws {
        let credentials = try Folder()
        credentials.write("9999", to: "bank-pin.pin")
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            try await bank.expect("/balance", code: "login-latched")
            let latched = try await bank.admin("/status")
            #expect(latched.json?["latches"] != .array([]))
            credentials.write("1234", to: "bank-pin.pin")
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 2)
            // The value that was rejected is the credential's no longer.
            let status = try await bank.admin("/status")
            #expect(status.json?["latches"] == .array([]))
            #expect(try await bank.metrics().values("latches", ["challenge": "bank-pin", "reason": "rejected"]) == [0])
        }
    }

    @Test("is tried again when the operator opens the latch over the admin socket")
    func unlatch() async throws {
        try await withBank(Self.wrongPIN) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            let opened = try await bank.admin("/unlatch?name=bank-pin", "-X", "POST")
            #expect(opened.json?["opened"] == 1)
            try await bank.expect("/balance", code: "login-rejected")
            #expect(bank.pinAnswers == 2)
        }
    }

    @Test("a login that fails for another reason is left as it is when an operator opens no latch")
    func unlatchedNothing() async throws {
        var configuration = BankConfiguration()
        configuration.environment = [:]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "no-credential")
            let unlatched = try await bank.countersign("unlatch", "bank-pin")
            #expect(unlatched.exit == 69 && unlatched.errors.contains("has no closed latch"), "\(unlatched)")
            let ready = try await bank.admin("/readyz")
            #expect(ready.status == 503 && ready.text.contains("no-credential"), "\(ready.summary)")
        }
    }

    @Test("an operator is told of as many opened latches as status shows, and separately of earlier values")
    func unlatchedNumber() async throws {
        let credentials = try Folder()
        credentials.write("9999", to: "bank-pin.pin")
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", code: "login-rejected")
            credentials.write("8888", to: "bank-pin.pin")
            #expect(try await eventually { try await bank.curl("/balance").code == "login-rejected" })
            let status = try await bank.countersign("status")
            #expect(status.output.components("latch     bank-pin") == 1, "\(status)")
            let unlatched = try await bank.countersign("unlatch", "bank-pin")
            #expect(unlatched.exit == 0 && unlatched.output == "opened 1, and 1 of earlier values\n", "\(unlatched)")
            #expect(try await bank.admin("/readyz").status == 200)
        }
    }

    @Test("keeps the last attempt: with one remaining nothing is sent")
    func attemptsKept() async throws {
        var rules = FakeUpstream.rules
        rules.startingAttempts = ["PinCodeAttempts": 1]
        try await withBank(rules: rules) { bank in
            for _ in 0..<2 {
                let answer = try await bank.curl("/balance")
                #expect(answer.status == 503)
                #expect(answer.code == "attempts-kept")
                #expect(answer.detail.contains("1 attempt remains"))
            }
            #expect(bank.pinAnswers == 0)
        }
    }

    @Test("is not sent to an account that is blocked")
    func blocked() async throws {
        var rules = FakeUpstream.rules
        rules.checks = [.failing("PinCodeAttempts", with: ["failure": "Account blocked"])]
        try await withBank(rules: rules) { bank in
            let answer = try await bank.curl("/balance")
            #expect(answer.status == 503)
            #expect(answer.code == "account-locked")
            #expect(answer.json?["challenge"] == "bank-pin")
            #expect(bank.pinAnswers == 0)
        }
    }

    @Test("is said to be missing where no source knows it")
    func missing() async throws {
        var configuration = BankConfiguration()
        configuration.environment = [:]
        try await withBank(configuration) { bank in
            let answer = try await bank.curl("/balance")
            #expect(answer.status == 502)
            #expect(answer.code == "no-credential")
            #expect(answer.detail.contains("bank-pin"))
            #expect(bank.pinAnswers == 0)
        }
    }
}

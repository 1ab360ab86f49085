// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Synchronization
import System
import Testing

@testable import Credentials

@Suite("Credential helper")
struct ExecSourceTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func source(
        _ script: String, environment: [String: String] = ["PATH": "/usr/bin:/bin"],
        timeout: Duration = .seconds(180), now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        onErrorOutput: @escaping @Sendable (String) -> Void = { _ in }
    ) -> ExecSource {
        ExecSource(
            command: ["/bin/sh", "-c", script], environment: environment, timeout: timeout, now: now,
            onErrorOutput: onErrorOutput)
    }

    private func failure(_ source: ExecSource) -> String? {
        do {
            _ = try source.credential(named: "bank-pin")
            return nil
        } catch {
            return error.reason
        }
    }

    @Test("a credential helper reads a name in JSON and writes the fields")
    func answers() throws {
        let asked = directory.file("asked")
        let source = source(#"cat > \#(asked); echo '{"fields": {"pin": "1234", "otp": 77}}'"#)
        let credential = try #require(try source.credential(named: #"bank "pin""#))
        #expect(credential.fields == ["pin": Secret("1234"), "otp": Secret("77")])
        #expect(try String(decoding: directory.read("asked"), as: UTF8.self) == #"{"name":"bank \"pin\""}"# + "\n")
    }

    @Test("a credential helper may leave its input unread")
    func deaf() throws {
        let source = source(#"exec 0<&-; echo '{"fields":{"pin":"1"}}'"#)
        for _ in 0..<3 { #expect(try source.credential(named: "a")?["pin"] == Secret("1")) }
    }

    @Test("a credential helper without fields does not know the credential", arguments: ["{}", #"{"fields":null}"#])
    func unknown(answer: String) throws {
        #expect(try source("echo '\(answer)'").credential(named: "a")?.name == nil)
    }

    @Test("a credential helper runs again only after its last result has expired")
    func expires() throws {
        let clock = Mutex(ContinuousClock.now)
        let count = directory.file("count")
        let source = source(#"echo x >> \#(count); echo '{"fields":{"pin":"1"},"expires_in":60}'"#) {
            clock.withLock { $0 }
        }
        func times() throws -> Int { try directory.read("count").count / 2 }
        for _ in 0..<3 { #expect(try source.credential(named: "a")?["pin"] == Secret("1")) }
        #expect(try times() == 1)
        _ = try source.credential(named: "b")
        #expect(try times() == 2)
        clock.withLock { $0 += .seconds(61) }
        _ = try source.credential(named: "a")
        #expect(try times() == 3)
    }

    @Test(
        "a credential helper without an expiry runs for each lookup",
        arguments: ["", #","expires_in":0"#, #","expires_in":-5"#])
    func noExpiry(expiry: String) throws {
        let count = directory.file("count")
        let source = source(#"echo x >> \#(count); echo '{"fields":{"pin":"1"}\#(expiry)}'"#)
        for _ in 0..<2 { _ = try source.credential(named: "a") }
        #expect(try directory.read("count").count == 4)
    }

    @Test("a failed credential helper is reported with exit code and first error line, without its output")
    func fails() {
        let reason = failure(source("echo hunter2; echo 'vault \u{1B}[31msealed' >&2; echo more >&2; exit 3"))
        #expect(reason?.contains("exit code 3") == true)
        #expect(reason?.contains("vault [31msealed") == true)
        #expect(reason?.contains("/bin/sh") == true)
        #expect(reason?.contains("more") == false)
        #expect(reason?.contains("hunter2") == false)
        #expect(failure(source("kill -9 $$"))?.contains("signal") == true)
    }

    @Test("the error output of a credential helper is logged with a limit and without secrets")
    func complaints() throws {
        let told = Mutex<[String]>([])
        func tell(_ script: String) throws -> String? {
            _ = try? source(script, onErrorOutput: { text in told.withLock { $0.append(text) } }).credential(named: "a")
            return told.withLock { told in
                defer { told = [] }
                return told.first
            }
        }
        let answer = #"echo '{"fields":{"pin":"73914682"}}'"#
        #expect(try tell(answer) == nil)
        #expect(try tell("\(answer); echo 'token is old' >&2") == "token is old")
        #expect(try tell("\(answer); echo 'using 73914682 now' >&2; echo two >&2") == "using <redacted> now | two")
        #expect(try tell("echo hunter2; echo 'sent hunter2' >&2; exit 1") == "sent <redacted>")
        let long = try #require(try tell("\(answer); yes 73914682 | head -c 100000 >&2"))
        #expect(long.count < 8192)
        #expect(!long.contains("7391"))
    }

    @Test(
        "a credential helper that does not write the expected JSON fails",
        arguments: ["hunter2", #"["hunter2"]"#, #"{"fields":"hunter2"}"#, ""])
    func noObject(output: String) {
        let reason = failure(source("echo '\(output)'"))
        #expect(reason != nil)
        #expect(reason?.contains("hunter2") == false)
    }

    @Test("a credential helper that exceeds its timeout is killed with its children")
    func timesOut() throws {
        let pipe = directory.file("alive")
        try #require(unsafe mkfifo(pipe, 0o600) == 0)
        // Its child holds the pipe open for as long as it lives.
        let reader = try Descriptor(opening: pipe, O_RDONLY | O_NONBLOCK)
        let reason = failure(source("sleep 600 > \(pipe) & sleep 600", timeout: .seconds(1)))
        #expect(reason?.contains("too long") == true)
        // No other process has it open.
        _ = try Descriptor(opening: pipe, O_WRONLY | O_NONBLOCK)
        var waiting = pollfd(fd: reader.number, events: Int16(POLLIN), revents: 0)
        #expect(unsafe poll(&waiting, 1, 180_000) == 1)
        #expect(Int32(waiting.revents) & POLLHUP != 0)
    }

    @Test("a credential helper with endless output is killed")
    func endless() {
        #expect(failure(source("yes"))?.contains("1024 KiB") == true)
        #expect(failure(source("yes >&2; true", timeout: .milliseconds(300)))?.contains("too long") == true)
    }

    @Test("a credential helper that is missing or has a relative path fails")
    func missing() {
        for command in [["/no/such/helper"], ["sh"], [], [""]] {
            let source = ExecSource(command: command, environment: [:])
            #expect(throws: CredentialError.self) { try source.credential(named: "a") }
        }
    }

    @Test("a credential helper gets neither the secrets of other sources nor open descriptors")
    func isolation() throws {
        let source = source(
            #"env > \#(directory.file("env")); ls /proc/self/fd > \#(directory.file("fds")); echo '{}'"#,
            environment: [
                "PATH": "/usr/bin:/bin", "COUNTERSIGN_A__PIN": "1", "COUNTERSIGN_KEYRING_PASSPHRASE": "2",
                "CREDENTIALS_DIRECTORY": "/run/credentials/x", "LANG": "C",
            ])
        _ = try source.credential(named: "a")
        let seen = try String(decoding: directory.read("env"), as: UTF8.self)
        #expect(seen.contains("LANG=C"))
        #expect(!seen.contains("COUNTERSIGN"))
        #expect(!seen.contains("CREDENTIALS"))
        // Standard input, output and error, and the directory that ls reads, even if this process inherited more.
        #expect(try String(decoding: directory.read("fds"), as: UTF8.self).split(separator: "\n").count == 4)
    }

    @Test("concurrent runs of a credential helper keep their results apart")
    func concurrent() async throws {
        let store = CredentialStore(sources: [source(#"read line; echo "{\"fields\":$line}""#)])
        try await withThrowingTaskGroup { group in
            for index in 0..<16 {
                group.addTask {
                    let found = try await store.credential(named: "n\(index)")
                    #expect(found?["name"] == Secret("n\(index)"))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("a run that is cancelled ends at once, although the helper has closed its outputs and goes on")
    func cancelledAtTheEnd() throws {
        let path = directory.file("cancellation")
        #expect(unsafe mkfifo(path, 0o600) == 0)
        let cancellation = try Descriptor(opening: path, O_RDWR | O_NONBLOCK)
        let run = HelperProcess(
            command: ["/bin/sh", "-c", "exec >&- 2>&-; echo now > \(path); exec sleep 300"],
            environment: ["PATH": "/usr/bin:/bin"], cancellation: cancellation.number)
        let began = ContinuousClock.now
        let failure = #expect(throws: HelperProcess.Failure.self) { try run.run([], timeout: .seconds(120)) }
        #expect(failure?.isTimeout == true && ContinuousClock.now - began < .seconds(60))
    }
}

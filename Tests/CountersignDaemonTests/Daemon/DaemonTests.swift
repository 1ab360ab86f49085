// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Settings
import SettingsReading
import System
import Systemd
import Testing

@testable import CountersignDaemon

@Suite("Exit codes of a start that fails")
struct StartFailureTests {
    private func exitCode(of error: any Error) throws -> Int32 {
        try #require(throws: Failure.self) { try StartFailure.explained { throw error } }.code
    }

    @Test(
        "a temporary failure of a start exits with 69, so that the service manager tries again",
        arguments: [EMFILE, ENFILE, ENOMEM, EIO])
    func passing(code: Int32) throws {
        #expect(SystemError(code: code).mayPass)
        #expect(try exitCode(of: ListenSocketsError.refused(errno: code)) == 69)
        #expect(try exitCode(of: ListenSocketsError.unusable(name: "a", descriptor: 3, errno: code)) == 69)
        #expect(try exitCode(of: CompositionError("later", mayPass: true)) == 69)
    }

    @Test("a failure that an operator has to fix exits with 78, and the daemon stays stopped")
    func lasting() throws {
        #expect(!SystemError(code: ENOENT).mayPass && !SystemError(code: EACCES).mayPass)
        #expect(try exitCode(of: ListenSocketsError.refused(errno: EINVAL)) == 78)
        #expect(try exitCode(of: ListenSocketsError.mismatch(configured: ["a"], passed: [])) == 78)
        #expect(try exitCode(of: CompositionError("users: there is no user ann on this machine")) == 78)
    }

    @Test("a configuration that cannot be read is 69 if that may pass, and 78 if the file is wrong or missing")
    func configuration() {
        // Reading another process's memory at 0 fails with EIO.
        let unread = Settings.load(path: "/proc/self/mem", environment: [:]).problems
        #expect(unread.count == 1 && ConfigurationFile.exitCode(of: unread) == 69, "\(unread)")
        let missing = Settings.load(path: "/nowhere.yaml", environment: [:]).problems
        #expect(ConfigurationFile.exitCode(of: missing) == 78)
        #expect(ConfigurationFile.exitCode(of: unread + missing) == 78)
    }
}

@Suite("The record of reloads")
struct ReloadRecordTests {
    @Test(
        "a reload record is read as it was written",
        arguments: [
            ReloadRecord(configuration: "/etc/countersign/countersign.yaml", count: 0, refusal: nil),
            ReloadRecord(configuration: "a b", count: 7, refusal: "x.yaml:1:2: what: é is wrong"),
        ])
    func roundTrip(_ record: ReloadRecord) {
        #expect(ReloadRecord(record.text) == record)
    }

    @Test("a reload record is reported over the admin socket, with a refusal and without")
    func socket() {
        for refusal in [nil, "x.yaml:1:2: wrong"] {
            var record = ReloadRecord(configuration: "a", count: 1, refusal: refusal)
            record.socket = "/run/countersign/admin.sock"
            #expect(ReloadRecord(record.text) == record)
        }
        #expect(ReloadRecord("a\n1\nadmin unix:/s\nb\nc\n") == nil)
    }

    @Test("line breaks in a refusal add no lines to a reload record")
    func lineBreaks() {
        let record = ReloadRecord(configuration: "a", count: 1, refusal: "one\ntwo\r\u{0}three\u{7F}")
        #expect(ReloadRecord(record.text)?.refusal == "one two  three ")
    }

    @Test(
        "a truncated or foreign file is not a reload record",
        arguments: ["", "a", "a\n", "a\n1", "a\nx\n", "a\n1\nb\nc\n"])
    func damaged(_ text: String) {
        #expect(ReloadRecord(text) == nil)
    }

    @Test(
        "a reload record is written in place of a pipe or link, and read only if its process is of the file's user",
        .enabled(if: geteuid() == 0))
    func foreignDirectory() throws {
        let folder = try TemporaryDirectory.make(prefix: "record")
        defer { TemporaryDirectory.remove(folder) }
        try #require(unsafe chown(folder, 4711, 4711) == 0)
        let (record, process) = (ReloadRecord(configuration: "a", count: 1, refusal: nil), getpid())
        let (path, victim) = ("\(folder)/reload.\(process)", "\(folder)/victim")
        try FileSystem.write([1], to: victim, mode: 0o600)
        try #require(unsafe mkfifo(path + "~", 0o600) == 0)
        try #require(unsafe symlink(victim, path) == 0)
        record.write(of: process, in: folder)
        #expect(ReloadRecord.of(process, in: folder) == record)
        #expect(ReloadRecord.processes(in: folder) == [process])
        #expect(try FileSystem.contents(of: victim, limit: 9) == [1])
        // A user who names a process of root as the daemon.
        try #require(unsafe chown(path, 4711, 4711) == 0)
        #expect(ReloadRecord.of(process, in: folder) == nil)
        ReloadRecord.remove(of: process, in: folder)
        #expect(DirectoryListing.names(in: folder) == ["victim"])
    }
}

@Suite("The required fields of credentials")
struct NeededFieldsTests {
    @Test("the required fields of a credential are those that its challenges use, by kind")
    func kinds() throws {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: bank }]
            upstreams: { bank: { url: "https://bank.example.com/" } }
            challenges:
              - { name: a, upstream: bank, inject: { X-Key: "{key}" }, credential: one }
              - { name: b, at: bank.example.com/b/*, inject: { X-Pair: "{password}-{username}" }, credential: two }
              - { name: c, at: bank.example.com/c/*, scheme: basic, credential: { by-user: { "1001": three, "*": four } } }
              - name: d
                at: bank.example.com/d/*
                scheme: bearer
                credential: five
                token: { url: "https://id.example.com/token", grant: client-credentials }
              - { name: e, at: bank.example.com/e/*, gateway: webseal, credential: one }
            """
        let settings = try #require(Settings.parse(Array(text.utf8), file: "f", environment: [:]).settings)
        #expect(
            settings.neededFields == [
                "one": ["key", "username", "password"], "two": ["username", "password"],
                "three": ["username", "password"], "four": ["username", "password"],
                "five": ["client-id", "client-secret"],
            ])
    }
}

@Suite("State that the disk has refused")
struct StateRetriesTests {
    @Test("refused state is written again after a second, then after doubling pauses of at most five minutes")
    func pauses() {
        var retries = StateRetries()
        var attempts: [Int64] = []
        for now in stride(from: Int64(0), through: 2_000_000, by: 1_000)
        where retries.isDue(hasUnwritten: true, now: now) {
            attempts.append(now)
        }
        #expect(attempts.prefix(5) == [1_000, 3_000, 7_000, 15_000, 31_000])
        #expect(attempts.suffix(2).last.map { $0 - attempts[attempts.count - 2] } == StateRetries.longestPause)
    }

    @Test("state that was written is not written again, and the next failure starts with a pause of a second")
    func over() {
        var retries = StateRetries()
        for now: Int64 in [0, 1_000, 3_000] { _ = retries.isDue(hasUnwritten: true, now: now) }
        let written = retries.isDue(hasUnwritten: false, now: 100_000)
        let failed = retries.isDue(hasUnwritten: true, now: 100_000)
        let early = retries.isDue(hasUnwritten: true, now: 100_999)
        let again = retries.isDue(hasUnwritten: true, now: 101_000)
        #expect([written, failed, early, again] == [false, false, false, true])
    }
}

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
        "what passes by itself is 69, so that the manager starts the daemon again",
        arguments: [EMFILE, ENFILE, ENOMEM, EIO])
    func passing(code: Int32) throws {
        #expect(SystemError(code: code).mayPass)
        #expect(try exitCode(of: ListenSocketsError.refused(errno: code)) == 69)
        #expect(try exitCode(of: ListenSocketsError.unusable(name: "a", descriptor: 3, errno: code)) == 69)
        #expect(try exitCode(of: CompositionError("later", mayPass: true)) == 69)
    }

    @Test("what only a person can fix is 78, after which the manager leaves the daemon stopped")
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

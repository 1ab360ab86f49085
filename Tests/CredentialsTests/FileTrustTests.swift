// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Testing

@testable import Credentials

/// Runs as root. User 4711 is the service, whose state is in `state`; user 4712 is an attacker.
@Suite("Files of other users that root trusts", .enabled(if: geteuid() == 0))
struct FileTrustTests {
    private static let (service, other) = (uid_t(4711), uid_t(4712))
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        try folder("state", of: Self.service)
    }

    private func folder(_ name: String, of owner: uid_t, mode: mode_t = 0o700) throws {
        try #require(unsafe mkdir(directory.file(name), 0o700) == 0)
        try #require(unsafe chmod(directory.file(name), mode) == 0)
        try #require(unsafe chown(directory.file(name), owner, owner) == 0)
    }

    @discardableResult
    private func file(_ name: String, of owner: uid_t, mode: mode_t = 0o600) throws -> String {
        let path = try directory.write("secret", to: name, mode: mode)
        try #require(unsafe chown(path, owner, owner) == 0)
        return path
    }

    private func fault(_ path: String, state: String? = "state") -> FileFault? {
        let trust = FileTrust(environment: [:], state: state.map(directory.file))
        do {
            _ = try PrivateFile(path: path, trust: trust.trust(in: path)).read()
            return nil
        } catch {
            return error
        }
    }

    @Test("root trusts files of the state directory's owner in directories of that user or of root")
    func service() throws {
        #expect(try fault(file("state/keyring", of: Self.service)) == nil)
        #expect(try fault(file("root-keyring", of: Self.service)) == nil)
        try folder("more", of: Self.service)
        #expect(try fault(file("more/keyring", of: Self.service)) == nil)
        #expect(try fault(file("state/own", of: 0)) == nil)
    }

    @Test("root does not trust another user's file in that user's directory, and does not advise to change its owner")
    func stranger() throws {
        try folder("theirs", of: Self.other)
        for path in [try file("theirs/keyring", of: Self.other), try file("state/keyring", of: Self.other)] {
            let found = try #require(fault(path))
            #expect(found.kind == .exposed && !found.reason.contains("chown"))
        }
    }

    @Test("root does not trust a service's file that another user links to or could replace")
    func feeding() throws {
        let own = try file("state/keyring", of: Self.service)
        try folder("theirs", of: Self.other)
        let link = directory.file("theirs/link")
        try #require(unsafe symlink(own, link) == 0)
        #expect(fault(link)?.kind == .exposed)
        try folder("open", of: 0, mode: 0o777)
        #expect(try fault(file("open/keyring", of: Self.service))?.kind == .exposed)
    }

    @Test("root trusts no other user's file if the state directory is missing or writable by others")
    func noState() throws {
        let own = try file("root-keyring", of: Self.service)
        try folder("open", of: Self.service, mode: 0o777)
        for state in ["open", "gone", "root-keyring", nil] { #expect(fault(own, state: state)?.kind == .exposed) }
    }

    @Test("root trusts files in systemd's credentials directory, and only those, whatever their mode")
    func passed() throws {
        try folder("credentials", of: Self.service, mode: 0o550)
        let path = try file("credentials/secrets.env", of: Self.service, mode: 0o440)
        let trust = FileTrust(environment: ["CREDENTIALS_DIRECTORY": directory.file("credentials")])
        #expect(trust.trust(in: path) == .unchecked)
        #expect(trust.trust(in: directory.file("credentials/../state/keyring")) == .ownerOnly)
        #expect(trust.trust(in: directory.file("state/keyring")) == .ownerOnly)
        #expect(FileTrust(environment: ["CREDENTIALS_DIRECTORY": "relative"]).trust(in: "relative/x") == .ownerOnly)
        try directory.write("COUNTERSIGN_A__B=c\n", to: "credentials/a.env", mode: 0o440)
        #expect(try EnvironmentFileSource(path: directory.file("credentials/a.env"), trust: trust).open() == 1)
        #expect(throws: (any Error).self) {
            try EnvironmentFileSource(path: directory.file("credentials/a.env")).open()
        }
        let passphrase = KeyringPassphrase(
            environment: ["CREDENTIALS_DIRECTORY": directory.file("credentials")], keyFile: path)
        #expect(try passphrase.read() == Secret("secret"))
    }
}

@Suite("State and runtime directories")
struct StateDirectoryTests {
    @Test("the state directory is the first one that applies")
    func state() throws {
        let all = ["STATE_DIRECTORY": "/s/a:/s/b", "XDG_STATE_HOME": "/x/", "HOME": "/home/ann"]
        #expect(try StateDirectory.locate(environment: all, uid: 0) == "/s/a")
        #expect(try StateDirectory.locate(environment: all, uid: 1000) == "/s/a")
        var rest = all
        rest["STATE_DIRECTORY"] = nil
        #expect(try StateDirectory.locate(environment: rest, uid: 0) == "/var/lib/countersign")
        #expect(try StateDirectory.locate(environment: rest, uid: 1000) == "/x/countersign")
        rest["XDG_STATE_HOME"] = "relative"
        #expect(try StateDirectory.locate(environment: rest, uid: 1000) == "/home/ann/.local/state/countersign")
        #expect(throws: StateError.self) { try StateDirectory.locate(environment: [:], uid: 1000) }
        #expect(throws: StateError.self) {
            try StateDirectory.locate(environment: ["STATE_DIRECTORY": "", "HOME": ""], uid: 1000)
        }
    }

    @Test("the runtime directory is the first one that applies")
    func runtime() {
        let all = ["RUNTIME_DIRECTORY": "/run/a:/run/b", "XDG_RUNTIME_DIR": "/run/user/1000"]
        func locate(_ environment: [String: String], uid: UInt32, usable: Bool) -> String {
            RuntimeDirectory.locate(environment: environment, uid: uid) { _ in usable }
        }
        #expect(locate(all, uid: 1000, usable: true) == "/run/a")
        let user = ["XDG_RUNTIME_DIR": "/run/user/1000"]
        #expect(locate(user, uid: 0, usable: false) == "/run/countersign")
        #expect(locate(user, uid: 1000, usable: true) == "/run/countersign")
        #expect(locate(user, uid: 1000, usable: false) == "/run/user/1000/countersign")
        #expect(locate([:], uid: 1000, usable: false) == "/run/countersign")
    }
}

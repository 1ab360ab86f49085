// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport
import Testing

/// User 65534 is the daemon's, taken over by somebody who places links where root's commands write.
@Suite("Commands of root on the files of a service", .enabled(if: geteuid() == 0))
struct ServiceFilesTests {
    private static let user: uid_t = 65_534

    private func give(_ path: String) { unsafe lchown(path, Self.user, Self.user) }

    /// Makes the file that stands for the system's, in a folder of root.
    private func victim(in folder: Folder) -> String {
        folder.makeFolder("etc")
        return folder.write("root", to: "etc/passwd", mode: 0o640)
    }

    private func isUntouched(_ victim: String) -> Bool {
        var status = stat()
        return unsafe stat(victim, &status) == 0 && status.st_uid == 0 && status.st_mode & 0o7777 == 0o640
            && readFile(victim) == Array("root".utf8)
    }

    @Test("`login`, `unlatch` and `doctor` write nothing where a link or second name in the state directory leads")
    func state() async throws {
        var configuration = BankConfiguration()
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration, startsDaemon: false) { bank in
            let (state, victim) = (bank.folder.path(of: "state"), victim(in: bank.folder))
            let first = try await bank.countersign("login", "--here", "bank-pin")
            #expect(first.exit == 69)
            let names = entries(of: state)
            for name in names { give("\(state)/\(name)") }
            give(state)
            #expect(names.contains("latches.sealed") && names.contains("lock"))
            for name in ["latches.sealed", "lock", "key", "login-locks"] {
                for isLink in [true, false] {
                    let path = "\(state)/\(name)"
                    unsafe rename(path, "\(state)/kept")
                    if isLink { unsafe symlink(victim, path) } else { unsafe link(victim, path) }
                    give(path)
                    if !isLink { unsafe chown(victim, 0, 0) }
                    for command in [["login", "--here", "bank-pin"], ["unlatch", "bank-pin"], ["doctor", "--here"]] {
                        let run = try await Command.run(
                            [Binary.path] + command + ["--config", bank.folder.path(of: "countersign.yaml")],
                            environment: bank.environment, in: bank.folder)
                        #expect((0...78).contains(run.exit), "\(name) \(command) \(run)")
                        #expect(!run.output.contains("root\n") && isUntouched(victim), "\(name) \(command) \(run)")
                    }
                    unsafe rename("\(state)/kept", path)
                }
            }
            #expect(bank.pinAnswers <= 2)
            // And as it was, it works; one of the commands may have opened the latch.
            let last = try await bank.countersign("unlatch", "bank-pin")
            #expect(last.exit == 0 || last.errors.contains("no closed latch"), "\(last)")
            for name in entries(of: state) {
                var status = stat()
                #expect(unsafe lstat("\(state)/\(name)", &status) == 0 && status.st_uid == Self.user, "\(name)")
            }
        }
    }

    @Test("`keyring set` writes neither through a link nor over a second name of a file of the system")
    func keyring() async throws {
        let folder = try Folder()
        folder.makeFolder("state")
        give(folder.path(of: "state"))
        let (keyring, victim) = (folder.path(of: "state/keyring"), victim(in: folder))
        func run(_ words: String..., input: String = "") async throws -> Command {
            try await Command.run(
                [Binary.path, "keyring"] + words + ["--keyring", keyring],
                environment: ["COUNTERSIGN_KEYRING_PASSPHRASE": "correct horse"], input: Array(input.utf8), in: folder)
        }
        #expect(try await run("init").exit == 0)
        #expect(try await run("set", "ann", "pin", input: "1").exit == 0)
        for name in ["keyring", "keyring.lock"] {
            let path = folder.path(of: "state/\(name)")
            unsafe rename(path, folder.path(of: "state/kept"))
            unsafe symlink(victim, path)
            let linked = try await run("set", "ann", "pin", input: "2")
            #expect(linked.exit == 77 && linked.errors.contains("symbolic link"), "\(linked)")
            unsafe unlink(path)
            unsafe link(victim, path)
            let second = try await run("set", "ann", "pin", input: "2")
            #expect(second.exit == 77 && second.errors.contains("hard link"), "\(second)")
            unsafe rename(folder.path(of: "state/kept"), path)
        }
        #expect(isUntouched(victim))
        #expect(try await run("get", "ann", "pin").output == "1")
    }

    @Test("`reload` signals no process that the daemon's user only names")
    func forgedRecord() async throws {
        let folder = try Folder()
        let file = folder.write(
            """
            listeners: [{ address: "127.0.0.1:1", upstream: bank }]
            upstreams: { bank: { url: "http://127.0.0.1:2/" } }

            """, to: "countersign.yaml")
        let child = try await Child.start(
            Child.Start(
                arguments: ["/bin/sleep", "600"], environment: [:], folder: folder.path,
                output: folder.path(of: "out"), errors: folder.path(of: "out")))
        folder.makeFolder("run")
        give(folder.path(of: "run"))
        give(folder.write("\(file)\n0\n", to: "run/reload.\(child.pid)"))
        let run = try await Command.countersign("reload", "--config", file, "--timeout", "1s", in: folder)
        #expect(run.exit == 69 && run.errors.contains("no daemon runs with"), "\(run)")
        #expect(child.exitCode == nil)
        await child.end()
    }
}

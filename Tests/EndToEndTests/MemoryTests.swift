// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
import Testing

@Suite("The memory of the daemon")
struct MemoryTests {
    private static let pin = "73914682"

    /// A bank whose PIN comes from a file, so that it stands in no environment.
    private func withStoredPIN(_ scenario: (Bank) async throws -> Void) async throws {
        let credentials = try Folder()
        credentials.write(Self.pin, to: "bank-pin.pin")
        var rules = FakeUpstream.rules
        rules.checks = [
            .pinCodeAttempts(pin: Self.pin, SecurityCheck.Properties(maxAttempts: 9, success: 600, blocked: 60))
        ]
        var configuration = BankConfiguration()
        configuration.sources = ["systemd"]
        configuration.environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        try await withBank(configuration, rules: rules) { bank in
            try await bank.expect("/balance", status: 200)
            try await scenario(bank)
        }
    }

    /// Lifts the limit on core dumps of a process, ends it as a crash does, and returns the dumps in the folder.
    private func crash(_ child: Child, in folder: Folder) async throws -> [String] {
        let lifted = try await Command.run(
            ["/usr/bin/prlimit", "--pid", "\(child.pid)", "--core=unlimited:unlimited"], in: folder)
        #expect(lifted.exit == 0, "\(lifted)")
        child.signal(SIGABRT)
        #expect(await child.waitForExit() == 128 + SIGABRT)
        return folder.files.filter { $0.split(separator: "/").last?.hasPrefix("core") == true }
    }

    @Test("is in no core dump, also where the limits allow one")
    func coreDump() async throws {
        try await withStoredPIN { bank in
            #expect(try await crash(bank.daemon.child, in: bank.folder) == [])
            await bank.killDaemon()
            // Another program would have left one, if this machine writes them where the program runs.
            let pattern = String(decoding: readFile("/proc/sys/kernel/core_pattern"), as: UTF8.self)
            guard pattern.hasPrefix("core") else { return }
            let folder = try Folder()
            let sleeper = try await Child.start(
                Child.Start(
                    arguments: ["/usr/bin/sleep", "60"], environment: [:], folder: folder.path,
                    output: folder.path(of: "out"), errors: folder.path(of: "err")))
            _ = await eventually {
                String(decoding: readFile("/proc/\(sleeper.pid)/comm"), as: UTF8.self) == "sleep\n"
            }
            #expect(try await crash(sleeper, in: folder) != [])
        }
    }

    @Test("belongs to root, so that no other process of the user can read it; its environment names no secret")
    func closed() async throws {
        try await withStoredPIN { bank in
            let process = "/proc/\(try bank.daemon.child.pid)"
            #expect(!readFile("\(process)/environ").isEmpty)
            for file in ["environ", "cmdline", "status", "maps"] {
                #expect(!String(decoding: readFile("\(process)/\(file)"), as: UTF8.self).contains(Self.pin))
            }
            let regions = String(decoding: readFile("\(process)/smaps"), as: UTF8.self).split(separator: "\n")
            let flags = regions.filter { $0.hasPrefix("VmFlags:") }.map { $0.split(separator: " ") }
            #expect(flags.contains { $0.contains("dd") && $0.contains("lo") })
        }
    }
}

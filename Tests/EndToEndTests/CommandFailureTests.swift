// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A command that cannot do its work")
struct CommandFailureTests {
    @Test("says in one line that the state cannot be used, and ends with 69", arguments: ["login", "serve"])
    func unusableState(command: String) async throws {
        let folder = try Folder()
        folder.makeFolder("state")
        folder.write("readable by all, so it may be known to others", to: "state/key", mode: 0o644)
        folder.write(
            BankConfiguration().text(port: 8080, upstreamPort: 8081, folder: folder), to: "countersign.yaml")
        let run = try await Command.countersign(
            command, "--config", folder.path(of: "countersign.yaml"), in: folder)
        #expect(run.exit == 69)
        let lines = run.errors.split(separator: "\n").filter { !$0.contains(": warning: ") }
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("countersign: \(folder.path(of: "state/key"))") == true)
    }
}

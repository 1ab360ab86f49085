// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport

/// A server that a script of `Tests/Scripts` runs: it says "ready" when it is, and ends by SIGTERM.
final class ScriptServer: Sendable {
    private let child: Child
    private let folder: Folder
    private let name: String

    /// Starts that script with those arguments.
    init(_ script: String, _ arguments: [String], in folder: Folder) async throws {
        // Of a script in a folder the last part: the outputs stand side by side.
        name = "\(script.split(separator: "/").last ?? "")-\(Ports.next())"
        self.folder = folder
        let path = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Tests/Scripts/\(script)"
        child = try await Child.start(
            Child.Start(
                arguments: [path] + arguments, environment: baseEnvironment(folder), folder: folder.path,
                output: folder.path(of: "\(name).out"), errors: folder.path(of: "\(name).err")))
        guard await eventually({ output.hasPrefix("ready\n") }) else {
            child.signal(SIGKILL)
            throw ChildError(description: "no \(script): \(output)\(folder.text(of: "\(name).err"))")
        }
    }

    /// All that it has printed.
    var output: String { folder.text(of: "\(name).out") }

    /// Ends it.
    func stop() async { await child.end() }
}

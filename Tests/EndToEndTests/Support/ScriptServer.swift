// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport

/// A server run by a script of `Tests/Scripts`, which prints "ready" at its start and ends by SIGTERM.
final class ScriptServer: Sendable {
    private let child: Child
    private let folder: Folder
    private let name: String

    /// Starts that script with those arguments.
    init(_ script: String, _ arguments: [String], in folder: Folder) async throws {
        // The last part of the path of a script in a folder: the outputs are beside each other.
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

/// A real WebSocket server, which sends every message back; and a real caller for it.
final class WebSocketServer: Sendable {
    /// The port that it listens on.
    let port = Ports.next()
    private let child: Child

    /// Starts it with further options of `Tests/Scripts/websocket-peer serve`.
    init(_ options: String..., in folder: Folder) async throws {
        let name = "websocket-\(port)"
        child = try await Child.start(
            Child.Start(
                arguments: [Self.script, "serve", "\(port)"] + options, environment: baseEnvironment(folder),
                folder: folder.path, output: folder.path(of: "\(name).out"), errors: folder.path(of: "\(name).err")))
        guard await eventually({ folder.text(of: "\(name).out") == "ready\n" }) else {
            child.signal(SIGKILL)
            throw ChildError(description: "no WebSocket server: \(folder.text(of: "\(name).err"))")
        }
    }

    /// Ends it.
    func stop() async { await child.end() }

    /// Has a caller send messages to an address and compare the echoes; returns the caller's output.
    static func call(_ url: String, _ options: String..., in folder: Folder) async throws -> String {
        let run = try await Command.run([script, "call", url] + options, in: folder)
        return run.exit == 0 ? run.output : "\(run.exit): \(run.errors)"
    }

    private static let script =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Tests/Scripts/websocket-peer"
}

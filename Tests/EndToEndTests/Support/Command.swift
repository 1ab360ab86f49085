// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization

/// A program run to its end, and its output.
struct Command: Sendable {
    /// The exit status, or 128 and the number of the signal that ended it; -1 if it had to be killed.
    var exit: Int32
    /// Standard output.
    var output: String
    /// Standard error.
    var errors: String

    private static let last = Mutex(0)

    /// Runs a program with its working folder and its output files in that folder.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], input: [UInt8]? = nil, in folder: Folder
    ) async throws -> Command {
        let number = last.withLock { last in
            last += 1
            return last
        }
        var start = Child.Start(
            arguments: arguments, environment: baseEnvironment(folder).merging(environment) { $1 },
            folder: folder.path, output: folder.path(of: "run\(number).out"),
            errors: folder.path(of: "run\(number).err"))
        if let input { start.input = folder.write(input, to: "run\(number).in") }
        let child = try await Child.start(start)
        if await child.waitForExit() == nil {
            child.signal(SIGKILL)
            return Command(exit: -1, output: "", errors: "\(arguments): does not end")
        }
        return Command(
            exit: child.exitCode ?? -1, output: String(decoding: readFile(start.output), as: UTF8.self),
            errors: String(decoding: readFile(start.errors), as: UTF8.self))
    }

    /// Runs `countersign`.
    static func countersign(
        _ arguments: String..., environment: [String: String] = [:], input: [UInt8]? = nil, in folder: Folder
    ) async throws -> Command {
        try await run(
            [Binary.path] + arguments, environment: environment, input: input, in: folder)
    }
}

/// Returns the environment of every program: the library path of the tests' own environment, and nothing else of it.
func baseEnvironment(_ folder: Folder) -> [String: String] {
    var environment = [
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": folder.path, "LANG": "C.UTF-8",
        "STATE_DIRECTORY": folder.path(of: "state"), "RUNTIME_DIRECTORY": folder.path(of: "run"),
    ]
    if let path = unsafe getenv("LD_LIBRARY_PATH") { environment["LD_LIBRARY_PATH"] = unsafe String(cString: path) }
    return environment
}

/// The program under test.
enum Binary {
    /// Its path: beside the tests' own in the build folder.
    static let path: String = {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
        let tests = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return tests.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/countersign"
    }()
}

/// The sources that these tests are part of.
enum Repository {
    /// The absolute path of the repository.
    static let path = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

    /// Returns the path of a file of the repository.
    static func path(of name: String) -> String { "\(path)/\(name)" }

    /// Returns the text of a file of the repository.
    static func text(of name: String) -> String { String(decoding: readFile(path(of: name)), as: UTF8.self) }

    /// Runs a script of `Tests/Scripts`. It sees the tests' own PATH folders and nothing else of the environment.
    static func script(
        _ name: String, _ arguments: [String] = [], environment: [String: String] = [:], in folder: Folder
    ) async throws -> Command {
        try await Command.run(
            [path(of: "Tests/Scripts/\(name)")] + arguments, environment: environment, in: folder)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization
internal import System

/// The command of `countersign run`, with this process's input, output and process group.
///
/// Its end is told by SIGTERM to this process, whose main thread then drains.
final class ChildCommand: Sendable {
    private struct State {
        var process: pid_t?
        /// What waitpid(2) tells of the ended process.
        var status: Int32?
    }

    private let program: String
    private let arguments: [String]
    private let state = Mutex(State())

    /// A command that runs `program`, a path. `arguments` begin with the name by which it was called.
    init(_ program: String, arguments: [String]) {
        self.program = program
        self.arguments = arguments
    }

    /// Returns the path of a command's program, found by `PATH` if its name has no slash. Throws exit code 127 or 126, as a shell.
    static func find(_ command: [String], environment: [String: String]) throws(Failure) -> String {
        let name = command.first ?? ""
        let directories = (environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
        let candidates = name.contains("/") ? [name] : directories.map { "\($0)/\(name)" }
        if let found = candidates.first(where: { FileSystem.allows($0, X_OK) && DirectoryListing.names(in: $0) == nil })
        {
            return found.hasPrefix("/") ? found : "./\(found)"
        }
        guard candidates.contains(where: { FileSystem.allows($0, F_OK) }) else {
            throw Failure("\(name): there is no such command", code: 127)
        }
        throw Failure("\(name): this user may not run it", code: 126)
    }

    /// Starts the command, and a thread that waits for its end.
    func start(environment: [String: String]) throws {
        // Where it is ignored, the kernel forgets how the command ended.
        signal(SIGCHLD, SIG_DFL)
        let child: pid_t
        do throws(SystemError) {
            let spawning = Spawning(
                program: program, arguments: arguments, environment: environment, leadsGroup: false)
            child = try OpenFileLimit.withOriginal { () throws(SystemError) in
                try spawning.spawn(input: STDIN_FILENO, output: STDOUT_FILENO, error: STDERR_FILENO)
            }
        } catch {
            throw Failure("\(program): cannot be run: \(error)", code: 126)
        }
        state.withLock { $0.process = child }
        do throws(ThreadError) {
            try startThread { [self] in
                let status = Spawning.wait(for: child)
                state.withLock { ($0.process, $0.status) = (nil, status ?? Self.lost) }
                kill(getpid(), SIGTERM)
            }
        } catch {
            kill(child, SIGKILL)
            _ = Spawning.wait(for: child)
            throw Failure("the command cannot be waited for: \(error)", code: EX_UNAVAILABLE)
        }
    }

    /// Passes a signal on to the command. Returns true if the command has ended.
    ///
    /// SIGINT is not passed on: the terminal sends it to the command as well.
    func passOn(_ signal: Int32) -> Bool {
        state.withLock { state in
            guard let process = state.process else { return state.status != nil }
            if signal != SIGINT, !Self.isIgnored(signal) { kill(process, signal) }
            return false
        }
    }

    /// True if this process was started with the signal ignored, as by nohup(1).
    private static func isIgnored(_ signal: Int32) -> Bool {
        var action = sigaction()
        guard unsafe sigaction(signal, nil, &action) == 0 else { return false }
        return unsafe action.__sigaction_handler.sa_handler.map { unsafe unsafeBitCast($0, to: Int.self) } == 1
    }

    /// The status of a command whose end nobody knows: exit code 69.
    private static let lost = EX_UNAVAILABLE << 8

    /// The exit code of the command, as a shell would tell it; nil before its end.
    var exitCode: Int32? {
        state.withLock(\.status).map { status in
            let signal = status & 0x7F
            return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        }
    }
}

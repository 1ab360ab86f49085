// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeClient
internal import Credentials
internal import Glibc
internal import Synchronization
internal import System

/// Runs commands of the program as children of the daemon, one at a time: with its user, environment and sandbox.
final class CommandRunner: Sendable {
    private static let timeout = Duration.seconds(300)
    private static let outputLimit = 4 << 20, errorLimit = 1 << 20

    private let configuration: String
    private let stateDirectory: String?
    private let gate: SharedAttemptGate
    private let isRunning = Atomic<Bool>(false)

    /// Makes a runner of commands that read the file `configuration`.
    ///
    /// They use the daemon's state, in `stateDirectory` if it is not the usual one. `gate` reads the latches that they
    /// have closed.
    init(configuration: String, stateDirectory: String?, gate: SharedAttemptGate) {
        self.configuration = configuration
        self.stateDirectory = stateDirectory
        self.gate = gate
    }

    /// Runs a command, its name and its other arguments. `done` gets its output, or nil if one runs already.
    func run(_ arguments: [String], _ done: @escaping @Sendable (CommandOutput?) -> Void) {
        guard let name = arguments.first, !isRunning.exchange(true, ordering: .acquiring) else { return done(nil) }
        // The program itself, also if a package has replaced its file since.
        let command = ["/proc/self/exe", name, "--here", "--config", configuration] + arguments.dropFirst()
        do throws(ThreadError) {
            try startThread { [self] in
                let output = output(of: command)
                gate.refresh { [self] in
                    isRunning.store(false, ordering: .releasing)
                    done(output)
                }
            }
        } catch {
            isRunning.store(false, ordering: .releasing)
            done(CommandOutput(exit: EX_UNAVAILABLE, output: "", errors: "countersign: \(error)\n"))
        }
    }

    private func output(of command: [String]) -> CommandOutput {
        var environment = Process.environment
        // These speak of the daemon's own process.
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "MAINPID"] {
            environment[name] = nil
        }
        if let stateDirectory { environment["STATE_DIRECTORY"] = stateDirectory }
        do throws(HelperProcess.Failure) {
            let run = try HelperProcess(
                command: command, environment: environment, outputLimit: Self.outputLimit, errorLimit: Self.errorLimit
            ).run([], timeout: Self.timeout)
            return CommandOutput(
                exit: run.exitCode ?? EX_UNAVAILABLE, output: String(decoding: run.standardOutput, as: UTF8.self),
                errors: String(decoding: run.standardError, as: UTF8.self))
        } catch {
            return CommandOutput(exit: EX_UNAVAILABLE, output: "", errors: "countersign: \(error.reason)\n")
        }
    }
}

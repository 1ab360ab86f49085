// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Learning
internal import Proxy
internal import System
internal import Systemd

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the daemon.",
        discussion: """
            On SIGHUP it reloads the configuration; on SIGTERM it finishes the exchanges under way and exits. Under systemd it \
            notifies the service manager when it is ready.

            With --to URL it needs no file: it requests the address without a secret, logs in once as the server asks, serves it, and prints \
            the configuration of that to standard output, everything else to standard error. Values that are not in the environment \
            are asked for at the terminal, again after a wrong one, and stored in a keyring if you say so. A rejected value is \
            remembered until the end only.
            """)

    @OptionGroup var configuration: ConfigurationArguments

    @Flag(name: .long, help: "Only read the configuration and print its problems.")
    var check = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Serve this upstream without a file, for a first try: find out how it logs in, and print the configuration.",
            valueName: "url"))
    var to: String?

    @Option(
        name: .long,
        help: "With --to: the credential whose stored values may be used. Without it, values are asked for.")
    var credential: String?

    @Option(
        name: .long,
        help: ArgumentHelp("With --to: the address to listen at. Default: 127.0.0.1:8080", valueName: "address"))
    var listen: String?

    @Option(
        name: .long, help: ArgumentHelp("With --to: authorities of the server's certificate.", valueName: "file"),
        completion: .file())
    var ca: String?

    func validate() throws {
        if to == nil, credential != nil || listen != nil || ca != nil {
            throw ValidationError("--credential, --listen and --ca belong to --to")
        }
        if to != nil, check || configuration.file != nil || configuration.option != nil {
            throw ValidationError("--to serves without a file: leave out the file and --check")
        }
    }

    func run() throws {
        if let to {
            let firstTry = try FirstTry(
                to: to, credential: credential, listener: listen ?? ConfigurationBlock.listener, authorities: ca)
            return try StartFailure.explained(advice: "; choose another address by --listen") { try firstTry.run() }
        }
        let file = ConfigurationFile(path: configuration.path)
        if check {
            _ = try file.load()
            return
        }
        do {
            try StartFailure.explained { try Daemon(settings: try file.load(), path: file.path).run() }
        } catch let failure as Failure {
            notify(failure.description)
            throw failure
        } catch let code as ExitCode {
            notify(
                code.rawValue == EX_CONFIG
                    ? "\(file.path) has errors; countersign check shows them."
                    : "\(file.path) cannot be read at the moment; the log has the reason.")
            throw code
        }
    }

    /// Sends the reason to the service manager: `systemctl status` shows it after the failure.
    private func notify(_ reason: String) {
        ServiceNotifier().send(.status("Not started: \(reason.onOneLine)"))
    }
}

/// Failures of a daemon's start, as those of a command.
enum StartFailure {
    /// Runs `body`, and converts its errors to exit codes. `advice` is added to the error of an address that cannot be
    /// used.
    static func explained(advice: String = "", _ body: () throws -> Void) throws {
        do {
            try body()
        } catch let error as ListenError {
            throw Failure(error.description + advice, code: EX_UNAVAILABLE)
        } catch let error as ListenSocketsError {
            throw Failure(error.description, code: error.mayPass ? EX_UNAVAILABLE : EX_CONFIG)
        } catch let error as CompositionError {
            throw Failure(error.description, code: error.exitCode)
        } catch let error as StateError {
            throw Failure(error.reason, code: EX_UNAVAILABLE)
        } catch let error as ThreadError {
            throw Failure(error.description, code: EX_UNAVAILABLE)
        }
    }
}

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Tell the running daemon to reload its configuration, and report the result.",
        discussion: """
            Sends SIGHUP and waits. Exits with 0 if the new configuration is in force, with 78 if the daemon refused it and \
            keeps the old one. The unit runs this command as ExecReload=, so `systemctl reload` fails if the reload fails.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The daemon's process. Default: $MAINPID, or else the daemon that runs with this configuration.",
            valueName: "number"))
    var process: Int32?

    @Option(name: .long, help: ArgumentHelp("How long to wait: 500ms, 10s, 5m.", valueName: "duration"))
    var timeout = "60s"

    @Flag(name: .long, help: "Print one JSON object when the new configuration is in force.")
    var json = false

    func run() throws {
        guard let limit = WaitCommand.duration(timeout) else {
            throw Failure("\(timeout): not a valid duration (use 500ms, 10s or 5m)", code: EX_USAGE)
        }
        let directory = RuntimeDirectory.locate(environment: Process.environment)
        let daemon = try process ?? Process.environment["MAINPID"].flatMap { Int32($0) } ?? find(in: directory)
        // Opened before its record is read: the number may belong to another process when this one has ended.
        guard daemon > 0, let handle = try? ProcessHandle(daemon),
            let before = ReloadRecord.of(daemon, in: directory)
        else {
            throw Failure(
                "process \(daemon) is not a running daemon, or its runtime directory is not \(directory)",
                code: EX_UNAVAILABLE)
        }
        do throws(SystemError) {
            try handle.send(signal: SIGHUP)
        } catch {
            guard error.code != EPERM else {
                throw Failure("this user may not signal process \(daemon); try sudo", code: EX_NOPERM)
            }
            throw Failure("process \(daemon) has ended", code: EX_UNAVAILABLE)
        }
        let record = try wait(for: daemon, handle, after: before, in: directory, limit: limit)
        if let refusal = record.refusal {
            throw Failure("reload refused, the old configuration stays in force: \(refusal)", code: EX_CONFIG)
        }
        if json { Process.print(["process": .integer(Int64(daemon)), "reloads": .integer(Int64(record.count))]) }
    }

    /// Pause between two looks at the record.
    private static let recordPause = Duration.milliseconds(5)

    /// Returns the process of the only daemon with this configuration. Throws if there is no such daemon, or more than
    /// one.
    private func find(in directory: String) throws -> Int32 {
        let path = ReloadRecord.path(ofConfiguration: configuration.config)
        let candidates = ReloadRecord.processes(in: directory).filter {
            ReloadRecord.of($0, in: directory)?.configuration == path
        }
        switch candidates.count {
        case 1: return candidates[0]
        case 0:
            throw Failure("no daemon runs with \(configuration.config) (looked in \(directory))", code: EX_UNAVAILABLE)
        default:
            let list = candidates.map(String.init).joined(separator: ", ")
            throw Failure(
                "several daemons run with \(configuration.config): choose one by --process (\(list))", code: EX_USAGE)
        }
    }

    private func wait(
        for daemon: Int32, _ handle: borrowing ProcessHandle, after before: ReloadRecord, in directory: String,
        limit: Duration
    ) throws -> ReloadRecord {
        let end = ContinuousClock.now + limit
        while true {
            if let record = ReloadRecord.of(daemon, in: directory), record.count > before.count { return record }
            guard ContinuousClock.now < end else {
                throw Failure("process \(daemon) has not reported a result after \(timeout)", code: EX_UNAVAILABLE)
            }
            guard try !handle.waitForEnd(within: Self.recordPause) else {
                throw Failure("process \(daemon) has ended", code: EX_UNAVAILABLE)
            }
        }
    }
}

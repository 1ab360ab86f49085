// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser
internal import Credentials
internal import Glibc

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the running daemon read its configuration again, and say how that ended.",
        discussion: """
            Sends SIGHUP and waits. Ends with 0 when the new configuration is in force, with 78 when the daemon has refused \
            it and keeps the old one. The unit has it as ExecReload=, so that `systemctl reload` fails where the reload does.
            """)

    @OptionGroup var configuration: ConfigurationOptions

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The daemon's process; by default $MAINPID, else the one that runs with that configuration.",
            valueName: "number"))
    var process: Int32?

    @Option(name: .long, help: ArgumentHelp("How long to wait: 500ms, 10s, 5m.", valueName: "duration"))
    var timeout = "60s"

    func run() throws {
        guard let limit = WaitCommand.duration(timeout) else {
            throw Failure("\(timeout): not a duration such as 500ms, 10s or 5m", code: EX_USAGE)
        }
        let directory = RuntimeDirectory.locate(environment: Process.environment)
        let daemon = try process ?? Process.environment["MAINPID"].flatMap { Int32($0) } ?? find(in: directory)
        guard daemon > 1, let before = ReloadRecord.of(daemon, in: directory) else {
            throw Failure(
                "process \(daemon) is no daemon that serves, or its runtime directory is not \(directory)",
                code: EX_UNAVAILABLE)
        }
        guard kill(daemon, SIGHUP) == 0 else {
            if errno == EPERM { throw Failure("this user may not signal process \(daemon); try sudo", code: EX_NOPERM) }
            throw Failure("process \(daemon) has ended", code: EX_UNAVAILABLE)
        }
        let record = try wait(for: daemon, after: before, in: directory, limit: limit)
        if let refusal = record.refusal {
            throw Failure("reload refused, the old configuration stays: \(refusal)", code: EX_CONFIG)
        }
    }

    /// The one daemon that runs with this configuration.
    private func find(in directory: String) throws -> Int32 {
        let candidates = ReloadRecord.processes(in: directory).filter {
            ReloadRecord.of($0, in: directory)?.configuration == configuration.config
        }
        switch candidates.count {
        case 1: return candidates[0]
        case 0:
            throw Failure("no daemon runs with \(configuration.config) (looked in \(directory))", code: EX_UNAVAILABLE)
        default:
            let list = candidates.map(String.init).joined(separator: ", ")
            throw Failure(
                "several daemons run with \(configuration.config): say which by --process (\(list))", code: EX_USAGE)
        }
    }

    private func wait(
        for daemon: Int32, after before: ReloadRecord, in directory: String, limit: Duration
    ) throws -> ReloadRecord {
        let end = ContinuousClock.now + limit
        while true {
            if let record = ReloadRecord.of(daemon, in: directory), record.count > before.count { return record }
            guard ReloadRecord.isRunning(daemon) else {
                throw Failure("process \(daemon) has ended", code: EX_UNAVAILABLE)
            }
            guard ContinuousClock.now < end else {
                throw Failure("no word from process \(daemon) after \(timeout)", code: EX_UNAVAILABLE)
            }
            usleep(5_000)
        }
    }
}

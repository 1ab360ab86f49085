// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
internal import Synchronization
internal import System

/// One run of a helper program, with a short input, limited output and a timeout.
///
/// The helper starts by posix_spawn in its own process group, with default signals and without this process's
/// descriptors.
package struct HelperProcess {
    /// The result of a run.
    package struct Output {
        /// The standard output, at most `outputLimit`; a longer one is an error.
        package var standardOutput: [UInt8]
        /// The first 4 KiB of the standard error.
        package var standardError: [UInt8]
        /// The exit code; `nil` after a signal, or if the status was lost.
        package var exitCode: Int32?
    }

    /// The reason for a run without output.
    package struct Failure: Error, Equatable {
        /// The reason, for the log.
        package let reason: String
        /// The reason without paths, for callers.
        package let publicReason: String
        /// True if the time limit passed, or the run was cancelled.
        package let isTimeout: Bool

        init(reason: String, publicReason: String? = nil, isTimeout: Bool = false) {
            self.isTimeout = isTimeout
            self.reason = reason
            self.publicReason = publicReason ?? reason
        }
    }

    /// Usual size limit of the standard error in bytes.
    package static let errorLimit = 4096
    private static let spawnLock = Mutex<Void>(())

    let command: [String]
    let environment: [String: String]
    /// The size limit of the standard output in bytes.
    var outputLimit = 1 << 20
    /// The size limit of the standard error in bytes; the rest is dropped.
    var errorLimit = Self.errorLimit
    /// A descriptor that becomes readable if the run is cancelled; a negative one never does.
    var cancellation: Int32 = -1

    /// Creates a run of a program, an absolute path, with its arguments and all of its environment.
    package init(
        command: [String], environment: [String: String], outputLimit: Int = 1 << 20,
        errorLimit: Int = HelperProcess.errorLimit, cancellation: Int32 = -1
    ) {
        self.errorLimit = errorLimit
        self.command = command
        self.environment = environment
        self.outputLimit = outputLimit
        self.cancellation = cancellation
    }

    /// Runs the helper with `question` on its standard input.
    ///
    /// `question` has at most 4096 bytes, which a pipe holds before the helper reads.
    package func run(_ question: [UInt8], timeout: Duration) throws(Failure) -> Output {
        try run(question, until: .now + timeout)
    }

    /// Runs the helper until `deadline`.
    func run(_ question: [UInt8], until deadline: ContinuousClock.Instant) throws(Failure) -> Output {
        guard question.count <= 4096 else { throw Failure(reason: "its input is too long") }
        let run: Running
        do {
            // One at a time: a process started by another thread inherits a pipe that is not close-on-exec yet.
            run = try Self.spawnLock.withLock { _ throws(SystemError) in
                try Running.start(Spawning(command: command, environment: environment), question)
            }
        } catch {
            throw Failure(
                reason: FileFault.system("run", command.first ?? "it", error.code).reason,
                publicReason: "it cannot be started")
        }
        do {
            var collected = try collect(from: run, until: deadline)
            collected.exitCode = try exitCode(of: run.child, until: deadline)
            return collected
        } catch let failure {
            // Kills the whole group, because the children of a shell must not outlive it. The process ID is valid until the wait.
            let child = run.child
            kill(-child, SIGKILL)
            _ = Spawning.wait(for: child)
            throw failure
        }
    }

    /// Reads both outputs to the end.
    private func collect(
        from run: borrowing Running, until deadline: ContinuousClock.Instant
    ) throws(Failure) -> Output {
        var collected = Output(standardOutput: [], standardError: [])
        collected.standardOutput.reserveCapacity(outputLimit + Self.chunk)
        var sources = [run.output.number, run.error.number]
        var isCancelled = false
        while sources.contains(where: { $0 >= 0 }) {
            let left = deadline - .now
            guard left > .zero, !isCancelled else {
                wipe(&collected.standardOutput)
                throw Self.timedOut
            }
            do {
                let ready = try DescriptorIO.waitUntilReadable(
                    anyOf: sources + [cancellation], within: min(left, .seconds(3600)))
                isCancelled = ready.last ?? false
                for index in sources.indices where ready[index] {
                    var bytes = try DescriptorIO.read(from: sources[index], atMost: Self.chunk)
                    defer { wipe(&bytes) }
                    // poll ignores negative descriptors.
                    if bytes.isEmpty { sources[index] = -1 }
                    if index == 0 {
                        collected.standardOutput += bytes
                    } else {
                        collected.standardError += bytes.prefix(errorLimit - collected.standardError.count)
                    }
                }
            } catch {
                wipe(&collected.standardOutput)
                throw Failure(reason: "its output could not be read (error \(error.code))")
            }
            guard collected.standardOutput.count <= outputLimit else {
                wipe(&collected.standardOutput)
                throw Failure(reason: "it wrote more than \(outputLimit >> 10) KiB")
            }
        }
        return collected
    }

    /// Waits for the exit of the child, which has closed its outputs.
    private func exitCode(of child: pid_t, until deadline: ContinuousClock.Instant) throws(Failure) -> Int32? {
        while true {
            do throws(SystemError) {
                if let status = try Spawning.statusIfEnded(child) {
                    return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
                }
            } catch {
                // Another thread has waited for the child, so the process ID may be in use again.
                return nil
            }
            let left = deadline - .now
            guard left > .zero else { throw Self.timedOut }
            do throws(SystemError) {
                let ready = try Spawning.waitForEnd(
                    of: child, orAnyOf: [cancellation], within: min(left, .seconds(3600)))
                if ready.contains(true) { throw SystemError(code: ECANCELED) }
            } catch {
                if error.code == ECANCELED { throw Self.timedOut }
                // No descriptor is left, or the kernel is old.
                poll(nil, 0, 10)
            }
        }
    }

    private static let chunk = 16 << 10
    private static let timedOut = Failure(reason: "it took too long and was stopped", isTimeout: true)
}

/// A started helper, with this process's ends of its pipes.
private struct Running: ~Copyable {
    let child: pid_t
    let output: Descriptor
    let error: Descriptor

    static func start(_ spawning: Spawning, _ question: [UInt8]) throws(SystemError) -> Running {
        let input = try Pipe()
        let output = try Pipe()
        let error = try Pipe()
        // This process still has the read end, so the write neither blocks nor raises SIGPIPE.
        try input.writer.writeAll(question)
        let child = try spawning.spawn(
            input: input.reader.number, output: output.writer.number, error: error.writer.number)
        // The other ends close on return.
        return Running(child: child, output: output.reader, error: error.reader)
    }
}

/// Error output of a helper, ready for the log: limited, without secrets and control characters.
struct HelperErrors {
    /// The lines, each with at most 200 characters.
    let lines: [String]

    /// Creates the lines of `output` with each of the `secrets` redacted.
    init(_ output: HelperProcess.Output, secrets: [String]) {
        var bytes = output.standardError[...]
        // A secret that the limit cuts in two would not be redacted.
        if bytes.count >= HelperProcess.errorLimit {
            bytes = bytes[..<(bytes.lastIndex(of: UInt8(ascii: "\n")) ?? bytes.startIndex)]
        }
        var text = String(decoding: bytes, as: UTF8.self)
        text = Redaction.text(text, without: secrets)
        lines = text.split(whereSeparator: \.isNewline).map { line in
            let printable = line.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
            return String(String.UnicodeScalarView(printable.prefix(200)))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// One run of a program: a short question on its standard input, its whole output back, within a time limit. By
/// posix_spawn, in a process group of its own, with default signals and none of our descriptors.
struct HelperProcess {
    /// What a run gave.
    struct Output {
        /// At most 1 MiB; more is an error.
        var standardOutput: [UInt8]
        /// The first 4 KiB; the rest is dropped.
        var standardError: [UInt8]
        /// The exit code; `nil` where a signal ended it, or where it got lost.
        var exitCode: Int32?
    }

    /// Why there is no output.
    struct Failure: Error, Equatable {
        /// What happened, for the log.
        let reason: String
        /// The same without paths.
        let told: String

        init(reason: String, told: String? = nil) {
            self.reason = reason
            self.told = told ?? reason
        }
    }

    static let outputLimit = 1 << 20
    static let errorLimit = 4096
    private static let starting = Mutex<Void>(())

    let command: [String]
    let environment: [String: String]

    /// Runs it. `question` has at most 4096 bytes, so that it fits into a pipe before anybody reads.
    func run(_ question: [UInt8], timeout: Duration) throws(Failure) -> Output {
        guard question.count <= 4096 else { throw Failure(reason: "the question to it is too long") }
        let deadline = ContinuousClock.now + timeout
        let run: Running
        do {
            // One at a time: a pipe is inherited by whatever another thread starts before it is made close-on-exec.
            run = try Self.starting.withLock { _ throws(SystemError) in
                try Running.start(Spawning(command: command, environment: environment), question)
            }
        } catch {
            throw Failure(
                reason: FileFault.system("run", command.first ?? "it", error.code).reason, told: "it cannot be started")
        }
        do {
            var collected = try collect(from: run, until: deadline)
            collected.exitCode = try exitCode(of: run.child, until: deadline)
            return collected
        } catch let failure {
            // The whole group: a shell's children must not outlive it. The number is the child's until it is waited for.
            let child = run.child
            kill(-child, SIGKILL)
            var status: Int32 = 0
            _ = try? systemCall { unsafe waitpid(child, &status, 0) }
            throw failure
        }
    }

    /// Reads both outputs to their ends.
    private func collect(
        from run: borrowing Running, until deadline: ContinuousClock.Instant
    ) throws(Failure) -> Output {
        var collected = Output(standardOutput: [], standardError: [])
        collected.standardOutput.reserveCapacity(Self.outputLimit + Self.chunk)
        var waiting = [run.output.number, run.error.number].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        defer { wipe(&buffer) }
        while waiting.contains(where: { $0.fd >= 0 }) {
            let left = Self.milliseconds(until: deadline)
            guard left > 0 else { throw Self.timedOut }
            do {
                _ = try systemCall { unsafe poll(&waiting, 2, left) }
                for index in waiting.indices where waiting[index].revents != 0 {
                    let number = waiting[index].fd
                    let got = try systemCall { unsafe read(number, &buffer, buffer.count) }
                    // A negative descriptor is one that poll passes over.
                    if got == 0 { waiting[index].fd = -1 }
                    if index == 0 {
                        collected.standardOutput += buffer[0..<got]
                    } else {
                        collected.standardError += buffer[0..<min(got, Self.errorLimit - collected.standardError.count)]
                    }
                }
            } catch {
                wipe(&collected.standardOutput)
                throw Failure(reason: "its output could not be read (error \(error.code))")
            }
            guard collected.standardOutput.count <= Self.outputLimit else {
                wipe(&collected.standardOutput)
                throw Failure(reason: "it wrote more than 1 MiB")
            }
        }
        return collected
    }

    /// Waits for the child, which has closed its outputs and so is about to exit.
    private func exitCode(of child: pid_t, until deadline: ContinuousClock.Instant) throws(Failure) -> Int32? {
        var pause: Int32 = 1
        while true {
            var status: Int32 = 0
            // An error means that somebody else has waited for it: the number may already be another's.
            guard let ended = try? systemCall({ unsafe waitpid(child, &status, WNOHANG) }) else { return nil }
            if ended == child { return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil }
            guard Self.milliseconds(until: deadline) > 0 else { throw Self.timedOut }
            poll(nil, 0, pause)
            pause = min(pause * 2, 50)
        }
    }

    private static let chunk = 16 << 10
    private static let timedOut = Failure(reason: "it took too long and was stopped")

    private static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
        let left = (deadline - .now) / .milliseconds(1)
        return left <= 0 ? 0 : Int32(min(left.rounded(.up), 3_600_000))
    }
}

/// A program that was started, and our ends of its pipes.
private struct Running: ~Copyable {
    let child: pid_t
    let output: Descriptor
    let error: Descriptor

    static func start(_ spawning: Spawning, _ question: [UInt8]) throws(SystemError) -> Running {
        let input = try PipeEnds.open()
        let output = try PipeEnds.open()
        let error = try PipeEnds.open()
        // While the reading end is ours, too, this neither blocks nor raises SIGPIPE.
        try input.writer.writeAll(question)
        let child = try spawning.spawn(
            input: input.reader.number, output: output.writer.number, error: error.writer.number)
        // All other ends close here.
        return Running(child: child, output: output.reader, error: error.reader)
    }
}

/// A pipe, close-on-exec.
private struct PipeEnds: ~Copyable {
    let reader: Descriptor
    let writer: Descriptor

    static func open() throws(SystemError) -> PipeEnds {
        var ends: [Int32] = [-1, -1]
        _ = try systemCall { unsafe pipe(&ends) }
        let made = PipeEnds(reader: Descriptor(owning: ends[0]), writer: Descriptor(owning: ends[1]))
        for end in ends { _ = try systemCall { fcntl(end, F_SETFD, FD_CLOEXEC) } }
        return made
    }
}

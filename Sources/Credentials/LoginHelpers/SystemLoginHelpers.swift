// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
package import Secrets
package import System

/// Login helpers of this machine: programs, and sockets of separate units.
///
/// Each run has a separate thread. A program gets a clean environment and its own process group; after its timeout, or
/// if its login is cancelled, the whole group is killed.
package struct SystemLoginHelpers: LoginHelpers {
    /// The number of helpers that run at once. Others wait for their turn, within their own time limit.
    package static let concurrencyLimit = 4

    private let environment: [String: String]
    private let onThread: ThreadStart
    private let onErrorOutput: @Sendable (_ helper: String, _ line: String) -> Void
    private let running = Monitor(0)

    /// Creates the port.
    ///
    /// Programs get `PATH`, `LANG`, `TZ` and `TMPDIR` of `environment` and nothing else. `onErrorOutput` receives the first
    /// line of a program's standard error, without secrets.
    package init(
        environment: [String: String], onThread: @escaping ThreadStart = startThread,
        onErrorOutput: @escaping @Sendable (_ helper: String, _ line: String) -> Void = { _, _ in }
    ) {
        self.environment = environment.filter { ["PATH", "LANG", "TZ", "TMPDIR"].contains($0.key) }
        self.onThread = onThread
        self.onErrorOutput = onErrorOutput
    }

    /// Runs the helper and returns its answer.
    package func answer(
        of helper: LoginHelper, to question: LoginHelperQuestion
    ) async throws(LoginHelperError) -> Secret {
        let deadline = ContinuousClock.now + helper.timeout
        do {
            let cancellation = try Cancellation()
            let outcome: Result<Secret, HelperProcess.Failure> = try await withTaskCancellationHandler {
                try await onOwnThread(onThread) {
                    Result { () throws(HelperProcess.Failure) in
                        try inTurn(until: deadline, cancellation) { () throws(HelperProcess.Failure) in
                            try run(helper, question, until: deadline, cancellation)
                        }
                    }
                }
            } onCancel: {
                cancellation.cancel()
            }
            return try outcome.get()
        } catch let failure as HelperProcess.Failure {
            throw LoginHelperError(
                reason: "the login helper \(helper.path) gave no answer: \(failure.reason)",
                publicReason: failure.publicReason, isTimeout: failure.isTimeout)
        } catch {
            throw LoginHelperError(
                reason: "the login helper \(helper.path) could not be run: \(error)",
                publicReason: "it could not be run on this machine")
        }
    }

    /// Runs `body` when fewer helpers than the limit run.
    private func inTurn(
        until deadline: ContinuousClock.Instant, _ cancellation: Cancellation,
        _ body: () throws(HelperProcess.Failure) -> Secret
    ) throws(HelperProcess.Failure) -> Secret {
        let turn: Void? = running.wait(within: max(.zero, deadline - .now)) { count in
            guard count < Self.concurrencyLimit else { return nil }
            count += 1
            return ()
        }
        guard turn != nil, !cancellation.isCancelled else {
            if turn != nil { running.update { $0 -= 1 } }
            throw HelperProcess.Failure(
                reason: "\(Self.concurrencyLimit) other login helpers are running", isTimeout: true)
        }
        defer { running.update { $0 -= 1 } }
        return try body()
    }

    private func run(
        _ helper: LoginHelper, _ question: LoginHelperQuestion, until deadline: ContinuousClock.Instant,
        _ cancellation: Cancellation
    ) throws(HelperProcess.Failure) -> Secret {
        switch helper.reach {
        case .program(let command):
            try run(command, question, until: deadline, cancellation)
        case .socket(let path):
            try HelperSocket(path: path, cancellation: cancellation.descriptor)
                .answer(to: question.text, limit: HelperAnswer.sizeLimit, until: deadline)
        }
    }

    private func run(
        _ command: [String], _ question: LoginHelperQuestion, until deadline: ContinuousClock.Instant,
        _ cancellation: Cancellation
    ) throws(HelperProcess.Failure) -> Secret {
        var process = HelperProcess(command: command, environment: environment)
        process.outputLimit = HelperAnswer.sizeLimit
        process.cancellation = cancellation.descriptor
        var text = question.text.revealBytes()
        defer { wipe(&text) }
        var output = try process.run(text, until: deadline)
        defer { wipe(&output.standardOutput) }
        let secrets = question.secrets.map { $0.revealText() } + Self.values(in: output.standardOutput)
        if let line = HelperErrors(output, secrets: secrets).lines.first { onErrorOutput(command.first ?? "", line) }
        guard output.exitCode == 0 else {
            throw HelperProcess.Failure(
                reason: output.exitCode.map { "it failed (exit code \($0))" } ?? "it failed (ended by a signal)")
        }
        return Secret(output.standardOutput)
    }

    /// Returns the secret values in an answer, to keep them out of the log.
    private static func values(in answer: [UInt8]) -> [String] {
        guard let json = JSONValue(parsing: answer) else {
            return answer.split { $0 == UInt8(ascii: "\n") }.map { String(decoding: $0, as: UTF8.self) }
        }
        var values = json["fields"]?.objectValue?.values.compactMap(\.stringValue) ?? []
        if case .array(let cookies)? = json["cookies"] { values += cookies.compactMap { $0["value"]?.stringValue } }
        return values
    }
}

/// Cancellation of a helper's run, as a descriptor that its thread can wait for.
final class Cancellation: Sendable {
    private let pipe: Pipe

    init() throws(SystemError) { pipe = try Pipe() }

    /// The descriptor, readable after `cancel()`.
    var descriptor: Int32 { pipe.reader.number }

    /// True after `cancel()`.
    var isCancelled: Bool { (try? DescriptorIO.waitUntilReadable(descriptor, within: .zero)) ?? true }

    /// Cancels the run.
    func cancel() { try? pipe.writer.writeAll([1]) }
}

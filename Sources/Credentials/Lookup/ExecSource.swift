// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
internal import Secrets
internal import Synchronization
internal import System

/// Credentials from a helper program.
///
/// The helper reads `{"name": "bank-pin"}` from its standard input, writes `{"fields": {"pin": "1234"}, "expires_in": 300}` to its
/// standard output, and exits with 0. Fields are strings or integers. Without `fields`, the helper does not know the name. The
/// result is used for `expires_in` seconds; without `expires_in`, or with 0, the helper runs for each lookup.
///
/// After a timeout, the helper and its process group are killed. Its standard output may be secret and never appears in an error.
/// The first line of its standard error does. All of the standard error (at most 4 KiB) goes to the log, with the current and
/// cached values redacted.
package final class ExecSource: CredentialLookup {
    private struct CachedCredential {
        let credential: Credential
        let until: ContinuousClock.Instant
    }

    private let command: [String]
    private let environment: [String: String]
    private let timeout: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let onErrorOutput: @Sendable (String) -> Void
    private let cache = Mutex<[String: CachedCredential]>([:])

    /// Creates a source for the helper `command`: an absolute path and its arguments.
    ///
    /// The helper gets `environment` without `CREDENTIALS_DIRECTORY` and the `COUNTERSIGN_` variables, which hold secrets of other
    /// sources. `onErrorOutput` receives its standard error.
    package init(
        command: [String], environment: [String: String], timeout: Duration = .seconds(10),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        onErrorOutput: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.onErrorOutput = onErrorOutput
        self.command = command
        self.environment = environment.filter { name, _ in
            !name.hasPrefix("COUNTERSIGN_") && name != "CREDENTIALS_DIRECTORY"
        }
        self.timeout = timeout
        self.now = now
    }

    /// True: each lookup may run the helper.
    package var asksOthers: Bool { true }

    /// Returns a description with the path of the helper.
    package func source(of fields: [String], of name: String) -> AnsweringSource? {
        AnsweringSource(
            kind: "a credential helper", name: "the credential helper \(command.first ?? "")",
            change:
                "Change it where the helper finds it; the next login asks the helper again, after the `expires_in` of its last answer."
        )
    }

    /// Returns the helper's result, or the cached one until its `expires_in` has passed.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        let asked = now()
        let known = cache.withLock { cache in
            cache = cache.filter { $0.value.until > asked }
            return cache[name]
        }
        if let known { return known.credential }
        guard name.utf8.count <= 1024 else { return nil }
        let answer = try answer(to: JSONValue.object(["name": .string(name)]).serialized() + [UInt8(ascii: "\n")])
        guard let fields = try fields(in: answer) else { return nil }
        let credential = Credential(name: name, fields: fields)
        // At most a day, so that a mistake of the helper does not cache a secret forever.
        let seconds = min(answer["expires_in"]?.integerValue ?? 0, 86_400)
        if seconds > 0 {
            cache.withLock { $0[name] = CachedCredential(credential: credential, until: asked + .seconds(seconds)) }
        }
        return credential
    }

    /// Runs the helper and returns its output as a JSON object.
    private func answer(to question: [UInt8]) throws(CredentialError) -> JSONValue {
        var output: HelperProcess.Output
        do {
            output = try HelperProcess(command: command, environment: environment).run(question, timeout: timeout)
        } catch {
            throw failure(error.reason, publicReason: error.publicReason)
        }
        defer { wipe(&output.standardOutput) }
        let answer = JSONValue(parsing: output.standardOutput, within: .local)
        let errorLines = HelperErrors(output, secrets: secrets(in: answer, output)).lines
        if !errorLines.isEmpty { onErrorOutput(errorLines.joined(separator: " | ")) }
        guard output.exitCode == 0 else {
            let words = "it failed (\(Self.ending(output)))"
            throw failure(words + (errorLines.first.map { ": \($0)" } ?? ""), publicReason: words)
        }
        guard let answer, answer.objectValue != nil else { throw failure("it did not write a JSON object") }
        return answer
    }

    /// Returns the values to redact from the log: the current output and the cached values.
    private func secrets(in answer: JSONValue?, _ output: HelperProcess.Output) -> [String] {
        var secrets = cache.withLock { cache in
            cache.values.flatMap { $0.credential.fields.values.map { $0.revealText() } }
        }
        if let members = answer?["fields"]?.objectValue, let fields = try? CredentialFields.secrets(of: members) {
            secrets += fields.values.map { $0.revealText() }
        } else {
            secrets += output.standardOutput.split { $0 == UInt8(ascii: "\n") }.map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        return secrets
    }

    private func fields(in answer: JSONValue) throws(CredentialError) -> [String: Secret]? {
        switch answer["fields"] {
        case nil, .null: return nil
        case .object(let members):
            do {
                return try CredentialFields.secrets(of: members)
            } catch {
                throw failure(error.reason)
            }
        default: throw failure("its \"fields\" is not an object")
        }
    }

    /// Returns the error; `publicReason` is the reason for callers, without the helper's path and output.
    private func failure(_ what: String, publicReason: String? = nil) -> CredentialError {
        CredentialError(
            reason: "the credential helper \(command.first ?? "") returned no credential: \(what)",
            publicReason:
                "The credential helper returned no credential: \(publicReason ?? what). Run it by hand, or see the daemon's log."
        )
    }

    private static func ending(_ output: HelperProcess.Output) -> String {
        if let code = output.exitCode { return "exit code \(code)" }
        return "ended by a signal"
    }
}

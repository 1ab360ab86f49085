// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
internal import Secrets
internal import Synchronization

/// Credentials from a helper program. It reads `{"name": "bank-pin"}` from its standard input and writes
/// `{"fields": {"pin": "1234"}, "expires_in": 300}` to its standard output, then exits with 0. The fields are texts or
/// whole numbers; without `fields` it does not know the name. What it gives is used for `expires_in` seconds without asking
/// again; without that, or with 0, it is asked each time.
///
/// The helper has a time limit, and is killed with all of its process group when that is over. Nothing that it writes to
/// its standard output, which may be secret, gets into an error; the first line of its standard error does, and all of that
/// (at most 4 KiB) goes to the log, with the values that it gives or gave left out.
package final class ExecSource: CredentialLookup {
    private struct Kept {
        let credential: Credential
        let until: ContinuousClock.Instant
    }

    private let command: [String]
    private let environment: [String: String]
    private let timeout: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let complaint: @Sendable (String) -> Void
    private let kept = Mutex<[String: Kept]>([:])

    /// The helper `command`: its absolute path, and arguments. It gets `environment` without the variables that begin
    /// with `COUNTERSIGN_`, and without `CREDENTIALS_DIRECTORY`: what other sources keep there is none of its business.
    /// `complaint` is told what it writes to its standard error.
    package init(
        command: [String], environment: [String: String], timeout: Duration = .seconds(10),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        complaint: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.complaint = complaint
        self.command = command
        self.environment = environment.filter { name, _ in
            !name.hasPrefix("COUNTERSIGN_") && name != "CREDENTIALS_DIRECTORY"
        }
        self.timeout = timeout
        self.now = now
    }

    /// Yes.
    package var asksOthers: Bool { true }

    /// The helper's answer, or the last one while its `expires_in` lasts.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        let asked = now()
        let known = kept.withLock { kept in
            kept = kept.filter { $0.value.until > asked }
            return kept[name]
        }
        if let known { return known.credential }
        guard name.utf8.count <= 1024 else { return nil }
        let answer = try answer(to: JSONValue.object(["name": .string(name)]).serialized() + [UInt8(ascii: "\n")])
        guard let fields = try fields(in: answer) else { return nil }
        let credential = Credential(name: name, fields: fields)
        // A day at most: a helper's slip must not keep a secret for ever.
        let seconds = min(answer["expires_in"]?.integerValue ?? 0, 86_400)
        if seconds > 0 {
            kept.withLock { $0[name] = Kept(credential: credential, until: asked + .seconds(seconds)) }
        }
        return credential
    }

    /// What the helper says, as a JSON object.
    private func answer(to question: [UInt8]) throws(CredentialError) -> JSONValue {
        var output: HelperProcess.Output
        do {
            output = try HelperProcess(command: command, environment: environment).run(question, timeout: timeout)
        } catch {
            throw failure(error.reason, told: error.told)
        }
        defer { wipe(&output.standardOutput) }
        let answer = JSONValue(parsing: output.standardOutput, within: .local)
        let errorLines = HelperErrors(output, secrets: secrets(in: answer, output)).lines
        if !errorLines.isEmpty { complaint(errorLines.joined(separator: " | ")) }
        guard output.exitCode == 0 else {
            let words = "it failed (\(Self.ending(output)))"
            throw failure(words + (errorLines.first.map { ": \($0)" } ?? ""), told: words)
        }
        guard let answer, answer.objectValue != nil else { throw failure("it did not write a JSON object") }
        return answer
    }

    /// What must not be logged: what the helper writes now, and what it gave before.
    private func secrets(in answer: JSONValue?, _ output: HelperProcess.Output) -> [String] {
        var secrets = kept.withLock { kept in
            kept.values.flatMap { $0.credential.fields.values.map { $0.revealText() } }
        }
        if let members = answer?["fields"]?.objectValue, let fields = try? FieldValues.secrets(of: members) {
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
                return try FieldValues.secrets(of: members)
            } catch {
                throw failure(error.reason)
            }
        default: throw failure("its \"fields\" is no object")
        }
    }

    /// `told`: what of it a caller may read, who is told neither which program it is nor what it says.
    private func failure(_ what: String, told: String? = nil) -> CredentialError {
        CredentialError(
            reason: "the credential helper \(command.first ?? "") gave nothing: \(what)",
            told: "The credential helper gave nothing: \(told ?? what). Run it by hand, or see the daemon's log.")
    }

    private static func ending(_ output: HelperProcess.Output) -> String {
        if let code = output.exitCode { return "exit code \(code)" }
        return "ended by a signal"
    }
}

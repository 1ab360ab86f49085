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
/// its standard output, which may be secret, gets into an error; the first line of its standard error does.
package final class ExecSource: CredentialLookup {
    private struct Kept {
        let credential: Credential
        let until: ContinuousClock.Instant
    }

    private let command: [String]
    private let environment: [String: String]
    private let timeout: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let kept = Mutex<[String: Kept]>([:])

    /// The helper `command`: its absolute path, and arguments. It gets `environment` without the variables that begin
    /// with `COUNTERSIGN_`, and without `CREDENTIALS_DIRECTORY`: what other sources keep there is none of its business.
    package init(
        command: [String], environment: [String: String], timeout: Duration = .seconds(10),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.command = command
        self.environment = environment.filter { name, _ in
            !name.hasPrefix("COUNTERSIGN_") && name != "CREDENTIALS_DIRECTORY"
        }
        self.timeout = timeout
        self.now = now
    }

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
            throw complaint(error.reason)
        }
        defer { wipe(&output.standardOutput) }
        guard output.exitCode == 0 else {
            let detail = output.firstErrorLine.map { ": \($0)" } ?? ""
            throw complaint("it failed (\(Self.ending(output)))\(detail)")
        }
        guard let answer = JSONValue(parsing: output.standardOutput), answer.objectValue != nil else {
            throw complaint("it did not write a JSON object")
        }
        return answer
    }

    private func fields(in answer: JSONValue) throws(CredentialError) -> [String: Secret]? {
        switch answer["fields"] {
        case nil, .null: return nil
        case .object(let members):
            do {
                return try FieldValues.secrets(of: members)
            } catch {
                throw complaint(error.reason)
            }
        default: throw complaint("its \"fields\" is no object")
        }
    }

    private func complaint(_ what: String) -> CredentialError {
        CredentialError(reason: "the credential helper \(command.first ?? "") gave nothing: \(what)")
    }

    private static func ending(_ output: HelperProcess.Output) -> String {
        if let code = output.exitCode { return "exit code \(code)" }
        return "ended by a signal"
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Secrets
internal import Settings

/// The credential of `countersign learn`: from the sources of a configuration, or else from a prompt.
struct LearnCredential {
    /// The credential's name.
    let name: String
    /// The sources; the standard ones without a configuration.
    let settings: CredentialSettings

    /// Returns the stored fields; empty if no source knows the name. Throws if a source cannot be read.
    func stored() throws -> [String: Secret] {
        let sources = CredentialComposition(
            settings, asker: CommandAsker.present, oneTimePasswords: NoOneTimePasswords())
        let name = name
        let found = Blocking.run { () -> Result<Credential?, CredentialError> in
            do throws(CredentialError) {
                return .success(try await sources.credential(named: name))
            } catch {
                return .failure(error)
            }
        }
        switch found {
        case .success(let credential): return credential?.fields ?? [:]
        case .failure(let error): throw Failure(error.reason, code: EX_CONFIG)
        }
    }

    /// Returns a credential with `fields`. Asks at the terminal for those that are not stored.
    func complete(_ stored: [String: Secret], fields: [String]) throws -> Credential {
        var values = stored
        for field in fields where values[field] == nil {
            do throws(AskFailure) {
                values[field] = try TerminalPrompt().ask("the \(field) of \(name)", id: field)
            } catch {
                let variable = Self.variable(of: name, field)
                throw Failure(
                    "the credential \(name) has no \(field): set \(variable), or choose another by --credential "
                        + "(\(error.reason))", code: EX_CONFIG)
            }
        }
        return Credential(name: name, fields: values)
    }

    /// Returns a credential whose secret is certainly wrong: random letters in place of it.
    static func falsified(_ credential: Credential) -> Credential? {
        let secrets = ["password", "client-secret", "pin", "key", "token"]
        guard let field = secrets.first(where: { credential[$0] != nil }) else { return nil }
        let letters = "abcdefghijkmnpqrstuvwxyz"
        let wrong = "Wrong-" + String((0..<12).compactMap { _ in letters.randomElement() }) + "-7"
        return Credential(name: credential.name, fields: credential.fields.merging([field: Secret(wrong)]) { $1 })
    }

    /// Returns the environment variable of a field.
    static func variable(of credential: String, _ field: String) -> String {
        "COUNTERSIGN_\(variable(credential))__\(variable(field))"
    }

    private static func variable(_ text: String) -> String {
        String(text.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
}

/// One-time passwords for a command without such a field.
struct NoOneTimePasswords: OneTimePasswords {
    func password(from seed: Secret, of credential: String) async throws(TemplateError) -> Secret {
        throw .oneTimePasswordUnsupported(credential: credential)
    }

    func check(_ seed: Secret, of credential: String) async throws(TemplateError) {
        throw .oneTimePasswordUnsupported(credential: credential)
    }
}

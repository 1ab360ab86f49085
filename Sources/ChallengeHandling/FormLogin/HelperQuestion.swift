// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Question to a login helper: the address, and the credential's fields.
///
/// The seed of one-time passwords stays here: the helper gets the current password as `totp`.
struct HelperQuestion {
    /// Version of the protocol.
    static let version: Int64 = 1

    let challenge: String
    let origin: Origin
    /// The address that shows the login page.
    let address: WebURL
    let timeout: Duration

    /// Returns one line of JSON. Throws if a field is not text, or if the one-time password was used already.
    func text(_ credential: Credential) async throws(TemplateError) -> LoginHelperQuestion {
        var fields: [String: SecretJSON] = [:]
        var secrets: [Secret] = []
        for (name, value) in credential.fields {
            secrets.append(value)
            if name == "totp-seed" { continue }
            guard let text = String(validating: value.revealBytes(), as: UTF8.self) else {
                throw .fieldNotText(field: name, credential: credential.name)
            }
            fields[name] = SecretJSON(.string(text))
        }
        if credential["totp-seed"] != nil {
            let password = try await TextTemplate("{totp}").render(credential)
            secrets.append(password)
            fields["totp"] = SecretJSON(.string(password.revealText()))
        }
        let question = SecretJSON(object: [
            "version": SecretJSON(.integer(Self.version)),
            "challenge": SecretJSON(.string(challenge)),
            "origin": SecretJSON(.string("\(origin)")),
            "url": SecretJSON(.string("\(address)")),
            "timeout": SecretJSON(.integer(max(1, timeout.components.seconds))),
            "fields": SecretJSON(object: fields),
        ])
        return LoginHelperQuestion(text: .joining([question.text, Secret("\n")]), secrets: secrets)
    }
}

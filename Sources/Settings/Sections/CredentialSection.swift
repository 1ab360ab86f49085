// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

extension CredentialSource {
    /// Where credentials come from without `credentials:`.
    static let standard: [CredentialSource] = [.environment, .systemd]

    /// `credentials.sources`.
    fileprivate static func read(_ sources: [Value]) -> [CredentialSource] {
        var known: [CredentialSource] = []
        for element in sources {
            guard let source = element.isMapping ? readMapping(element) : readWord(element) else { continue }
            if known.contains(source) { element.report("this source stands in the list already") }
            known.append(source)
        }
        return known
    }

    private static func readWord(_ value: Value) -> CredentialSource? {
        guard let text = value.text() else { return nil }
        switch text {
        case "env": return .environment
        case "systemd": return .systemd
        case "exec", "keyring":
            value.report("\(text) needs a path: `\(text): /…`")
        default:
            value.report(
                "\"\(text)\" is none of env, systemd, keyring, exec\(didYouMean(text, among: ["env", "systemd", "keyring"]))"
            )
        }
        return nil
    }

    private static func readMapping(_ value: Value) -> CredentialSource? {
        guard let fields = value.fields() else { return nil }
        let keyring = fields["keyring"]
        let keyFile = fields["key-file"]
        let asks = fields["ask"]
        let exec = fields["exec"]
        let environment = fields["env"]
        fields.finish()
        if let environment {
            if let other = keyring ?? keyFile ?? asks ?? exec {
                other.report("belongs to another source: begin it with a new -")
            }
            return environment.filePath().map(CredentialSource.environmentFile)
        }
        if let exec {
            if let other = keyring ?? keyFile ?? asks {
                other.report("belongs to another source: begin it with a new -")
            }
            let words = exec.listOrOne()
            guard let program = words.first?.filePath() else {
                if words.isEmpty { exec.report("names no program") }
                return nil
            }
            return .exec([program] + words.dropFirst().compactMap { $0.text() })
        }
        let keyFilePath = keyFile?.filePath()
        guard let path = (keyring ?? fields.required("keyring"))?.filePath() else { return nil }
        return .keyring(path: path, keyFile: keyFilePath, asks: asks?.flag() ?? false)
    }
}

extension CredentialSettings {
    /// `credentials:`.
    static func read(_ value: Value) -> CredentialSettings {
        guard let fields = value.fields() else { return CredentialSettings() }
        let asked = fields["ask"]
        let sources = asked == nil ? fields.required("sources") : fields["sources"]
        fields.finish()
        return CredentialSettings(
            sources: sources.map { CredentialSource.read($0.listOrOne()) } ?? CredentialSource.standard,
            asked: asked.map(readAsked) ?? [:])
    }

    /// `credentials.ask`: fields by the name of their credential.
    private static func readAsked(_ value: Value) -> [String: [String]] {
        var asked: [String: [String]] = [:]
        for (name, value) in value.members() ?? [] {
            let fields = value.listOrOne()
            if fields.isEmpty { value.report("names no field") }
            var known: [String] = []
            for field in fields {
                guard let name = field.word() else { continue }
                if known.contains(name) { field.report("this field stands in the list already") }
                known.append(name)
            }
            asked[name] = known
        }
        return asked
    }
}

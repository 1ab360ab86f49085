// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension CredentialSource {
    /// Where credentials come from without `credentials:`.
    static let standard: [CredentialSource] = [.environment, .systemd]

    /// `credentials:`.
    static func read(_ value: Value) -> [CredentialSource] {
        guard let fields = value.fields() else { return [] }
        let sources = fields.required("sources")?.listOrOne() ?? []
        fields.finish()
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
        let exec = fields["exec"]
        fields.finish()
        if let exec {
            if let other = keyring ?? keyFile { other.report("belongs to another source: begin it with a new -") }
            let words = exec.listOrOne()
            guard let program = words.first?.filePath() else {
                if words.isEmpty { exec.report("names no program") }
                return nil
            }
            return .exec([program] + words.dropFirst().compactMap { $0.text() })
        }
        let keyFilePath = keyFile?.filePath()
        guard let path = (keyring ?? fields.required("keyring"))?.filePath() else { return nil }
        return .keyring(path: path, keyFile: keyFilePath)
    }
}

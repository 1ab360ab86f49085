// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

/// Source of credentials.
package enum CredentialSource: Sendable, Equatable {
    /// Variables of the environment: `COUNTERSIGN_` NAME `__` FIELD.
    case environment
    /// A file of such variables, by its absolute path.
    case environmentFile(String)
    /// A helper program and its arguments; JSON in, JSON out.
    case exec([String])
    /// An encrypted keyring, and optionally the file of its passphrase.
    ///
    /// `asks`: a person is asked for the passphrase if nothing else supplies it.
    case keyring(path: String, keyFile: String?, asks: Bool = false)
    /// The directory of systemd's credentials.
    case systemd
}

/// Settings of `credentials`.
package struct CredentialSettings: Sendable, Equatable {
    /// Sources in order. The first that has a name wins.
    package var sources: [CredentialSource] = CredentialSource.standard
    /// Fields that a person is asked for if no source has them, by credential.
    package var asked: [String: [String]] = [:]

    /// Settings if `credentials` is absent.
    package static let standard = CredentialSettings()
}

extension CredentialSource {
    /// Sources if `credentials` is absent.
    static let standard: [CredentialSource] = [.environment, .systemd]

    private enum Keys {
        static let environment = Key(
            "env", .file, without: "", "File of variables, which is read again when it changes.")
        static let keyring = Key("keyring", .file, without: "", "Encrypted keyring.")
        static let keyFile = Key("key-file", .file, "File with the keyring's passphrase; mode 0600.")
        static let ask = Key<Bool?>(
            "ask", .flag, without: "`false`", "Asks a person for the passphrase through systemd's password agents.")
        static let exec = Key("exec", .command, without: "", "Helper program and its arguments.")
    }

    /// Table of `credentials.sources`.
    static let section = KeySection(
        "credentials.sources", [Keys.environment, Keys.keyring, Keys.keyFile, Keys.ask, Keys.exec])

    fileprivate static let words = ["env", "systemd"]

    fileprivate static func read(_ value: Value) -> CredentialSource? {
        value.isMapping ? value.fields(of: section).flatMap(readMapping) : readWord(value)
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
                "\"\(text)\" is not one of env, systemd, keyring, exec\(didYouMean(text, among: words + ["keyring"]))")
        }
        return nil
    }

    private static func readMapping(_ fields: Fields) -> CredentialSource? {
        let keyring = fields.written(Keys.keyring)
        let keyFile = fields.written(Keys.keyFile)
        let asks = fields.written(Keys.ask)
        let exec = fields.written(Keys.exec)
        func reportOthers(_ others: Value?...) {
            others.compactMap(\.self).first?.report(
                "belongs to another source: write that source as a new list element")
        }
        if fields.written(Keys.environment) != nil {
            reportOthers(keyring, keyFile, asks, exec)
            return fields[Keys.environment].map(CredentialSource.environmentFile)
        }
        if exec != nil {
            reportOthers(keyring, keyFile, asks)
            return fields[Keys.exec].map(CredentialSource.exec)
        }
        if keyring == nil { fields.reportMissing(Keys.keyring) }
        let (path, file, ask) = (fields[Keys.keyring], fields[Keys.keyFile], fields[Keys.ask])
        return path.map { .keyring(path: $0, keyFile: file, asks: ask ?? false) }
    }

    fileprivate var text: String {
        switch self {
        case .environment: "env"
        case .systemd: "systemd"
        case .environmentFile, .exec, .keyring: ""
        }
    }
}

extension CredentialSettings {
    private enum Keys {
        static let sources = Key<[CredentialSource]>(
            "sources", .sources, default: CredentialSource.standard,
            "Sources of credentials; the first that has a name wins.")
        static let ask = Key<[String: [String]]?>(
            "ask", .askedFields, "Fields that a person is asked for if no source has them.")
    }

    /// Table of `credentials`.
    static let section = KeySection("credentials", [Keys.sources, Keys.ask])

    /// Reads `credentials`.
    static func read(_ fields: Fields) -> CredentialSettings {
        CredentialSettings(sources: fields[Keys.sources], asked: fields[Keys.ask] ?? [:])
    }
}

extension ValueForm where Content == [CredentialSource] {
    fileprivate static let sources = ValueForm(
        "list", choices: CredentialSource.words + ["exec", "keyring"], section: CredentialSource.section,
        write: { YAMLNode(list: $0.map { .scalar($0.text) }) },
        read: { value in
            var known: [CredentialSource] = []
            for element in value.listOrOne() {
                guard let source = CredentialSource.read(element) else { continue }
                if known.contains(source) { element.report("this source is already in the list") }
                known.append(source)
            }
            return known
        })
}

extension ValueForm where Content == [String: [String]] {
    /// Lists of fields by credential name.
    fileprivate static let askedFields = ValueForm("credential: fields") { value in
        var asked: [String: [String]] = [:]
        for (name, value) in value.members() ?? [] {
            let fields = value.listOrOne()
            if fields.isEmpty { value.report("does not name a field") }
            var known: [String] = []
            for field in fields {
                guard let name = field.word() else { continue }
                if known.contains(name) { field.report("this field is already in the list") }
                known.append(name)
            }
            asked[name] = known
        }
        return asked
    }
}

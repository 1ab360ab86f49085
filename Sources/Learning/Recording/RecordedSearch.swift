// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeHandling
internal import Secrets
internal import SettingsReading

/// Search of a recording for its login.
struct RecordedSearch {
    private static let passwordWords = ["password", "passwd", "passwort", "pwd", "pass", "pin"]
    private static let userWords = ["user", "login", "name", "email", "mail", "log", "account"]

    private let entries: [HARRecording.Entry]
    private let origin: Origin
    private let known: [String: Secret]

    init(_ entries: [HARRecording.Entry], origin: Origin, known: [String: Secret]) {
        self.entries = entries
        self.origin = origin
        self.known = known
    }

    /// Returns the index of the last login, and the name of its parameter with the password.
    func login() throws(LearnDefeat) -> (index: Int, password: String) {
        var elsewhere: HARRecording.Entry?
        for (index, entry) in entries.enumerated().reversed() where entry.method != "GET" {
            guard let name = passwordName(in: entry.body) else { continue }
            if entry.url.origin == origin { return (index, name) }
            elsewhere = elsewhere ?? entry
        }
        if let entry = elsewhere {
            throw LearnDefeat(
                "\(entry.method) \(entry.url.origin)",
                "the recorded password goes to another server than \(origin), to which no secret is sent")
        }
        if let entry = entries.first(where: { $0.url.origin == origin && hasNestedPassword($0.body) }) {
            throw LearnDefeat(
                "\(entry.method) \(entry.url.origin)",
                "the password is inside a nested JSON value, which `login` cannot send")
        }
        throw LearnDefeat(
            "the recording",
            "no request to \(origin) carries a password. Record from before the login page until after it.")
    }

    /// Returns the name of the parameter that is the password: by the known value, else by its name.
    private func passwordName(in body: RecordedBody) -> String? {
        let pairs = body.pairs
        if let secret = known["password"]?.revealText() {
            if let pair = pairs.first(where: { $0.value == secret }) { return pair.name }
        }
        for word in Self.passwordWords {
            if let pair = pairs.first(where: { $0.name.lowercased().contains(word) && !$0.value.isEmpty }) {
                return pair.name
            }
        }
        return nil
    }

    private func hasNestedPassword(_ body: RecordedBody) -> Bool {
        guard case .json(let value) = body else { return false }
        return JSONLeaves(value, limit: 1024).leaves.contains { leaf in
            Self.passwordWords.contains { leaf.pointer.lowercased().contains($0) }
        }
    }

    /// Returns the page that was shown before the login and has an input of that name.
    func page(before index: Int, with password: String) -> HARRecording.Entry? {
        entries[..<index].last { entry in
            entry.method == "GET" && entry.url.origin == origin && form(on: entry, with: password) != nil
        }
    }

    /// Returns the request before the login that sends the user's name alone; `nil` if there is none.
    func nameStep(before index: Int) throws(LearnDefeat) -> RecordedLogin.NameStep? {
        for (number, entry) in entries[..<index].enumerated().reversed()
        where entry.method == "POST" && entry.url.origin == origin && passwordName(in: entry.body) == nil {
            guard case .form(let pairs) = entry.body, let user = userName(in: pairs, password: "") else { continue }
            let page = page(before: number, with: user)
            let hidden = page.map { hiddenInputs(of: $0, with: user) } ?? []
            return RecordedLogin.NameStep(
                page: page?.url, url: entry.url, parameters: try parameters(of: number, password: "", hidden: hidden),
                usesHiddenInputs: pairs.contains { hidden.contains($0.name) })
        }
        return nil
    }

    /// Returns the names of the hidden inputs of the form with that input.
    func hiddenInputs(of page: HARRecording.Entry, with password: String) -> Set<String> {
        Set(form(on: page, with: password)?.inputs.filter { $0.type == "hidden" }.map(\.name) ?? [])
    }

    private func form(on page: HARRecording.Entry, with name: String) -> HTMLPage.Form? {
        HTMLPage(parsing: page.responseBody, type: "text/html; charset=utf-8").forms.first { $0.hasInput(named: name) }
    }

    /// Returns the parameters of the login as templates, without those of hidden inputs.
    ///
    /// A constant is a word that the server sent before: what a person typed may be a secret, whatever its name is.
    func parameters(
        of index: Int, password: String, hidden: Set<String>
    ) throws(LearnDefeat) -> [RecordedLogin.Parameter] {
        let entry = entries[index]
        let words = ServerWords(entries[..<index])
        let pairs = entry.body.pairs.filter { !hidden.contains($0.name) }
        let user = userName(in: pairs, password: password)
        var parameters: [RecordedLogin.Parameter] = []
        for pair in pairs {
            guard Self.isName(pair.name), !parameters.contains(where: { $0.name == pair.name }) else {
                throw LearnDefeat(
                    "\(entry.method) \(entry.url.path)",
                    "the parameter \(ServerText.name(pair.name)) is repeated, or has a name that is not plain ASCII")
            }
            if pair.name == password {
                parameters.append(.init(name: pair.name, template: "{password}"))
            } else if pair.name == user {
                parameters.append(.init(name: pair.name, template: "{username}"))
            } else if !Self.namesSecret(pair.name),
                Self.isConstant(pair.value) && words.contains(pair.value) || isOwnAddress(pair.value)
            {
                parameters.append(.init(name: pair.name, template: ConfigurationLine.literal(pair.value)))
            } else {
                throw LearnDefeat(
                    "\(entry.method) \(entry.url.path)",
                    "the parameter \(ServerText.name(pair.name)) carries a value that is no hidden input and no constant of a page or "
                        + "script in the recording; it may change with each login, or be a secret")
            }
        }
        return parameters
    }

    private func userName(in pairs: [RecordedBody.Pair], password: String) -> String? {
        if let user = known["username"]?.revealText(), let pair = pairs.first(where: { $0.value == user }) {
            return pair.name
        }
        guard known["username"] == nil else { return nil }
        let others = pairs.filter { $0.name != password }
        for word in Self.userWords {
            if let pair = others.first(where: { $0.name.lowercased().contains(word) }) { return pair.name }
        }
        return nil
    }

    private static func isName(_ name: String) -> Bool {
        (1...128).contains(name.utf8.count) && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// Returns whether a value is an address of the server without a query, such as the client id of an OAuth 2 login for pages.
    private func isOwnAddress(_ value: String) -> Bool {
        guard let url = WebURL(value) else { return false }
        return url.origin == origin && url.query == nil && url.path.utf8.count <= 64
            && !value.utf8.contains(UInt8(ascii: "#"))
            && url.path.split(separator: "/").allSatisfy {
                Self.isConstant(String($0))
            }
    }

    /// Returns whether a value looks like a word or a small number, not like a secret or a token.
    private static func isConstant(_ value: String) -> Bool {
        guard value.utf8.count <= 40 else { return false }
        if value.utf8.count <= 3 { return true }
        // A version or a number in a word: `oauth2`, `client-1`.
        let digits = value.utf8.count { (0x30...0x39).contains($0) }
        if digits > 0, digits <= 2, value.utf8.count <= 16, value.utf8.count >= digits * 4 {
            return isConstant(String(value.unicodeScalars.filter { !("0"..."9").contains($0) }.map(Character.init)))
        }
        return value.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || " .-_/:{}".unicodeScalars.contains($0))
        }
    }

    /// Returns whether a constant of that name may be a secret, which must not be in a configuration.
    private static func namesSecret(_ name: String) -> Bool {
        SecretNames.contains(name) || passwordWords.contains(where: name.lowercased().contains)
    }

    /// Returns the first value of the login's answer that a later request carries in a field.
    func token(after index: Int) -> RecordedLogin.Token? {
        guard let answer = JSONValue(parsing: entries[index].responseBody) else { return nil }
        let leaves = JSONLeaves(answer, limit: 1024).leaves.filter { $0.text.utf8.count >= 8 }
        for entry in entries[(index + 1)...].prefix(1000) where entry.url.origin == origin {
            for field in entry.fields
            where !["cookie", "referer"].contains(field.name) && InjectedTemplate.fault(ofName: field.name) == nil {
                guard let leaf = leaves.first(where: { field.value.hasSuffix($0.text) }) else { continue }
                let prefix = String(field.value.dropLast(leaf.text.count))
                guard prefix.utf8.count <= 32, Self.isConstant(prefix), prefix.utf8.allSatisfy(\.isFieldValue) else {
                    continue
                }
                return RecordedLogin.Token(
                    pointer: leaf.pointer, field: field.name, prefix: ConfigurationLine.literal(prefix))
            }
        }
        // Browsers leave `Authorization` out of a recording that is saved without sensitive data.
        let names = ["/access_token", "/token", "/data/token", "/jwt", "/id_token"]
        let leaf = names.lazy.compactMap { name in leaves.first { $0.pointer == name } }.first
        return leaf.map { RecordedLogin.Token(pointer: $0.pointer, field: "authorization", prefix: "Bearer ") }
    }
}

/// The texts in a JSON value, with pointers to them (RFC 6901).
struct JSONLeaves {
    /// A text and the pointer to it.
    struct Leaf {
        let pointer: String
        let text: String
    }

    private(set) var leaves: [Leaf] = []
    private let limit: Int

    /// Collects at most `limit` texts.
    init(_ value: JSONValue, limit: Int) {
        self.limit = limit
        collect(value, "", depth: 0)
    }

    private mutating func collect(_ value: JSONValue, _ pointer: String, depth: Int) {
        guard leaves.count < limit, depth < 16 else { return }
        switch value {
        case .string(let text): leaves.append(Leaf(pointer: pointer, text: text))
        case .object(let members):
            for (name, member) in members.sorted(by: { $0.key < $1.key }) {
                collect(member, "\(pointer)/\(Self.escaped(name))", depth: depth + 1)
            }
        case .array(let elements):
            for (index, element) in elements.enumerated() { collect(element, "\(pointer)/\(index)", depth: depth + 1) }
        default: return
        }
    }

    private static func escaped(_ name: String) -> String {
        var result = ""
        for scalar in name.unicodeScalars {
            switch scalar {
            case "~": result += "~0"
            case "/": result += "~1"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

/// Login in a recording: its request, the parts of that request, and the token in later requests.
package struct RecordedLogin: Sendable, Equatable {
    /// A parameter and the template of its value.
    package struct Parameter: Sendable, Equatable {
        /// The name.
        package let name: String
        /// The template; a constant has its braces doubled.
        package let template: String
    }

    /// A value of the answer that later requests carry.
    package struct Token: Sendable, Equatable {
        /// The pointer to it in the answer.
        package let pointer: String
        /// The field that carries it, as the browser wrote it.
        package let field: String
        /// The text before it in that field, as part of a template.
        package let prefix: String
    }

    /// The request before it, which sends the user's name alone.
    package struct NameStep: Sendable, Equatable {
        /// The page with its form; `nil` if it was not recorded.
        package let page: WebURL?
        /// The address that it is sent to.
        package let url: WebURL
        /// The parameters in order.
        package let parameters: [Parameter]
        /// True if hidden inputs of the page are submitted as well.
        package let usesHiddenInputs: Bool
    }

    /// The step before the login; `nil` if the login has only one.
    package let nameStep: NameStep?
    /// The address that the login is sent to.
    package let url: WebURL
    /// True if the parameters are JSON.
    package let isJSON: Bool
    /// The parameters in order.
    package let parameters: [Parameter]
    /// The name of the parameter with the password.
    package let passwordName: String
    /// The page with the form, if one of its inputs is the password.
    package let page: WebURL?
    /// True if hidden inputs of the page are submitted as well.
    package let usesHiddenInputs: Bool
    /// The token that later requests carry, if it is not a cookie.
    package let token: Token?

    /// The names of credential fields in the parameters.
    package var fields: [String] {
        ["username", "password"].filter { field in
            (parameters + (nameStep?.parameters ?? [])).contains { $0.template == "{\(field)}" }
        }
    }

    /// Finds the last login at `origin` in a recording. `known` are fields of the credential, if there are any.
    ///
    /// Throws the reason and its page if the login cannot be configured.
    package init(
        _ recording: HARRecording, at origin: Origin, known: [String: Secret]
    ) throws(LearnDefeat) {
        let search = RecordedSearch(recording.entries, origin: origin, known: known)
        let (index, password) = try search.login()
        let entry = recording.entries[index]
        let page = search.page(before: index, with: password)
        let passwords = Passwords(of: entry, password: password, known: known)
        // Messages name addresses and parameters, too.
        guard !passwords.areIn(Self.texts(of: entry.url) + Self.texts(of: page?.url) + entry.body.pairs.map(\.name))
        else {
            throw Self.repeated(entry)
        }
        let hidden = page.map { search.hiddenInputs(of: $0, with: password) } ?? []
        url = entry.url
        if case .json = entry.body { isJSON = true } else { isJSON = false }
        passwordName = password
        parameters = try search.parameters(of: index, password: password, hidden: hidden)
        usesHiddenInputs = entry.body.pairs.contains { hidden.contains($0.name) }
        self.page = page?.url
        token = search.token(after: index)
        nameStep = parameters.contains { $0.template == "{username}" } ? nil : try search.nameStep(before: index)
        guard entry.status != 0, ![401, 403].contains(entry.status) else {
            throw LearnDefeat(
                "\(entry.method) \(entry.url.path): \(entry.status)",
                "the recorded login was refused. Record one that works.")
        }
        guard !passwords.areIn(texts) else { throw Self.repeated(entry) }
    }

    private static func repeated(_ entry: HARRecording.Entry) -> LearnDefeat {
        LearnDefeat(
            "\(entry.method) \(entry.url.origin)",
            "the password is also in an address, or in the name of a parameter, which a configuration would repeat.")
    }

    /// The texts of the recording that a configuration repeats.
    private var texts: [String] {
        let constants = parameters.filter { !["{username}", "{password}"].contains($0.template) }.map(\.template)
        return Self.texts(of: url) + Self.texts(of: page)
            + Self.texts(of: nameStep?.url) + Self.texts(of: nameStep?.page)
            + (nameStep?.parameters ?? []).flatMap { [$0.name, $0.template] }.filter { $0 != "{username}" }
            + [token?.pointer, token?.field, token?.prefix].compactMap(\.self)
            + parameters.map(\.name) + constants
    }

    /// Returns an address as it is, and decoded.
    private static func texts(of url: WebURL?) -> [String] {
        guard let text = url?.description else { return [] }
        return [text, String(decoding: FormEncoding.decodedBytes(text.utf8[...]), as: UTF8.self)]
    }

    /// The password in a recording, and that of the credential.
    private struct Passwords {
        private let values: [String]

        init(of entry: HARRecording.Entry, password: String, known: [String: Secret]) {
            let typed = entry.body.pairs.filter { $0.name == password }.map(\.value)
            values = (typed + [known["password"]?.revealText()].compactMap(\.self)).filter { !$0.isEmpty }
        }

        /// Returns true if one of them is in one of `texts`.
        func areIn(_ texts: [String]) -> Bool {
            texts.contains { text in values.contains { text.contains($0) } }
        }
    }
}

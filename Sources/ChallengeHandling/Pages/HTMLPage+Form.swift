// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension HTMLPage {
    /// A form, and how a browser submits it (WHATWG HTML §4.10.22).
    package struct Form: Sendable, Equatable {
        /// Method of a form.
        package enum Method: String, Sendable, Equatable { case get, post, dialog }

        /// Encoding of a form's entries.
        package enum Body: String, Sendable, Equatable {
            case urlEncoded = "application/x-www-form-urlencoded"
            case multipart = "multipart/form-data"
            case plain = "text/plain"
        }

        /// The `id`, by which inputs elsewhere name their form.
        package var id: String?
        /// The form's own `action`, unresolved; `nil` if missing.
        var ownAction: String?
        var ownMethod: Method
        var ownBody: Body = .urlEncoded
        /// The labels of encodings that the form accepts.
        package var acceptedCharsets: String?
        var isNotValidated = false
        /// The inputs, lists, text areas and buttons, in the order of the page.
        package var inputs: [Input]
        /// True if the page has the form's end.
        package var isEnded = false

        /// Creates a form.
        package init(action: String?, method: Method = .get, inputs: [Input] = []) {
            ownAction = action
            ownMethod = method
            self.inputs = inputs
        }

        init(_ attributes: HTMLAttributes) {
            self.init(
                action: attributes["action"].map(HTMLPage.trimmed),
                method: Method(word: attributes.word("method") ?? ""))
            id = attributes["id"]
            ownBody = Body(word: attributes.word("enctype") ?? "")
            acceptedCharsets = attributes["accept-charset"]
            isNotValidated = attributes.has("novalidate")
        }

        /// The button that submits the form: the first one that is not disabled.
        package var submitter: Input? { inputs.first { $0.isSubmitter && !$0.isDisabled } }

        /// The unresolved address that gets the form; `nil` or empty means the page itself.
        package var action: String? { submitter?.override.action ?? ownAction }

        /// The method by which a browser sends the form.
        package var method: Method { submitter?.override.method ?? ownMethod }

        /// The encoding of the entries in the body.
        package var body: Body { submitter?.override.body ?? ownBody }

        /// True if a browser sends the form by POST; without a `method` it uses GET.
        package var isPost: Bool { method == .post }

        /// True if a browser checks the inputs before it sends the form.
        package var isValidated: Bool { !isNotValidated && submitter?.override.isNotValidated != true }

        /// The path of the action without query, fragment, or parameters (`;jsessionid=…`).
        package var actionPath: Substring {
            Substring((action ?? "").utf8.prefix { !"?#;".utf8.contains($0) })
        }

        /// Returns whether the form has an input of that name.
        package func hasInput(named name: String) -> Bool { inputs.contains { $0.name == name } }
    }
}

extension HTMLPage.Form.Method {
    /// Reads the attribute. Any other word means the default (WHATWG HTML §4.10.18.6).
    init(word: String) { self = Self(rawValue: word) ?? .get }
}

extension HTMLPage.Form.Body {
    /// Reads the attribute. Any other word means the default (WHATWG HTML §4.10.18.6).
    init(word: String) { self = Self(rawValue: word) ?? .urlEncoded }
}

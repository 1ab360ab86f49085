// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The forms of a page, as a login needs them. Text in comments and scripts is ignored.
package struct HTMLPage: Sendable, Equatable {
    /// A form.
    package struct Form: Sendable, Equatable {
        /// The unresolved `action`; `nil` if missing, which means the page itself.
        package var action: String?
        /// True if a browser sends the form by POST; without a `method` it uses GET.
        package var isPost: Bool
        /// The inputs in order.
        package var inputs: [Input]
        /// Names of lists and text areas, which a browser submits and a login does not.
        package var unfilled: Set<String> = []
        /// True if the page has the form's end.
        package var isEnded = false

        /// Creates a form.
        package init(action: String?, isPost: Bool = false, inputs: [Input] = []) {
            self.action = action
            self.isPost = isPost
            self.inputs = inputs
        }

        /// The path of the action without query, fragment, or parameters (`;jsessionid=…`).
        package var actionPath: Substring {
            Substring((action ?? "").utf8.prefix { !"?#;".utf8.contains($0) })
        }

        /// Returns whether the form has an input of that name.
        package func hasInput(named name: String) -> Bool { inputs.contains { $0.name == name } }
    }

    /// An input of a form, or a button that submits it.
    package struct Input: Sendable, Equatable {
        /// The `name`; empty if missing.
        package var name: String
        /// The `type` in lower case; `text` if missing.
        package var type: String
        /// The `value`; `on` for a checkbox or radio button without one.
        package var value: String
        /// True if a checkbox or radio button is selected.
        package var isChecked: Bool
        /// The `autocomplete` in lower case; empty if missing.
        package var autocomplete: String

        /// True if the input is disabled, so that a browser does not submit it.
        package var isDisabled: Bool
        /// True if a browser does not submit the form while the input is empty.
        package var isRequired: Bool

        /// Creates an input.
        package init(
            name: String, type: String, value: String, isChecked: Bool = false, autocomplete: String = "",
            isDisabled: Bool = false, isRequired: Bool = false
        ) {
            self.isRequired = isRequired
            self.name = name
            self.type = type
            self.value = value
            self.isChecked = isChecked
            self.autocomplete = autocomplete
            self.isDisabled = isDisabled
        }

        init(_ tag: HTMLScanner.Tag, defaultType: String) {
            let type = tag["type"].map(HTMLPage.trimmed)?.lowercased() ?? defaultType
            let isBox = type == "checkbox" || type == "radio"
            self.init(
                name: tag["name"] ?? "", type: type, value: tag["value"] ?? (isBox ? "on" : ""),
                isChecked: isBox && tag["checked"] != nil,
                autocomplete: tag["autocomplete"].map(HTMLPage.trimmed)?.lowercased() ?? "",
                isDisabled: tag["disabled"] != nil, isRequired: tag["required"] != nil)
        }
    }

    /// The number of bytes of a page that are parsed.
    package static let limit = 64 * 1024
    /// The limits of forms and of inputs of all forms. Later ones are ignored.
    package static let formLimit = 64, inputLimit = 1024

    /// The forms in order.
    package private(set) var forms: [Form] = []
    /// The base of addresses on the page, if given (`<base href>`).
    package private(set) var base: String?

    /// Parses the forms of the first `limit` bytes of a page in an ASCII-compatible encoding. Any bytes are accepted.
    ///
    /// A value of more than a quarter of `limit` is dropped.
    package init(parsing bytes: some Collection<UInt8>, limit: Int = Self.limit) {
        var scanner = HTMLScanner(Array(bytes.prefix(limit)), valueLimit: limit / 4)
        var isInForm = false
        var inputs = 0
        while let tag = scanner.next() {
            switch tag.name {
            case "form" where tag.isEnd:
                if isInForm { forms[forms.count - 1].isEnded = true }
                isInForm = false
            case "form" where !isInForm:
                // A form within a form is ignored (WHATWG HTML §13.2.6.4.7).
                guard forms.count < Self.formLimit else { return }
                let isPost = tag["method"].map { Self.trimmed($0).lowercased() == "post" } ?? false
                forms.append(Form(action: tag["action"].map(Self.trimmed), isPost: isPost))
                isInForm = true
            case "input" where isInForm && !tag.isEnd && inputs < Self.inputLimit:
                inputs += 1
                forms[forms.count - 1].inputs.append(Input(tag, defaultType: "text"))
            case "button" where isInForm && !tag.isEnd && inputs < Self.inputLimit:
                inputs += 1
                forms[forms.count - 1].inputs.append(Input(tag, defaultType: "submit"))
            case "select" where isInForm && !tag.isEnd && inputs < Self.inputLimit,
                "textarea" where isInForm && !tag.isEnd && inputs < Self.inputLimit:
                inputs += 1
                if tag["disabled"] == nil, let name = tag["name"], !name.isEmpty {
                    forms[forms.count - 1].unfilled.insert(name)
                }
            case "base" where !tag.isEnd && base == nil:
                base = tag["href"].map(Self.trimmed)
            default:
                continue
            }
        }
    }

    private static func trimmed(_ text: String) -> String {
        let bytes = text.utf8.drop(while: HTMLScanner.isSpace)
        let end = bytes.lastIndex { !HTMLScanner.isSpace($0) }.map(bytes.index(after:)) ?? bytes.startIndex
        return String(Substring(bytes[..<end]))
    }
}

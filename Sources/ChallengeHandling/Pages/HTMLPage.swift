// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes

/// The forms of a page, as a login needs them: read once, by the living standard of HTML, for all that asks for forms.
package struct HTMLPage: Sendable, Equatable {
    /// The number of bytes of a page that are parsed.
    package static let limit = 1024 * 1024
    /// The limits of forms and of inputs of all forms. Later ones are not read.
    package static let formLimit = 64, inputLimit = 1024

    /// The forms in order.
    package private(set) var forms: [Form]
    /// The base of addresses on the page, if given (`<base href>`).
    package let base: String?
    /// The page's encoding, which is that of its forms.
    package let encoding: PageEncoding
    /// False if the page is longer than the limit, or has more forms and inputs than are read.
    package let isWhole: Bool

    /// Parses the forms of a page. Any bytes are accepted. `type` is its `Content-Type`.
    package init(parsing bytes: some Collection<UInt8>, type: String? = nil, limit: Int = Self.limit) {
        let read = Array(bytes.prefix(limit))
        encoding = PageEncoding(of: read, type: type)
        let reader = HTMLFormReader(encoding.text(read))
        base = reader.base
        isWhole = reader.isWhole && read.count == bytes.count
        forms = reader.forms
        distribute(reader.controls)
    }

    /// Parses the forms of a response; none without a body.
    package init(_ response: ExaminedResponse) {
        self.init(parsing: response.body ?? [], type: response.fields[.contentType])
    }

    /// Gives each form its inputs, in the order of the page.
    private mutating func distribute(_ controls: [Input]) {
        var named: [String: Int] = [:]
        for (index, form) in forms.enumerated() {
            if let id = form.id, !id.isEmpty, named[id] == nil { named[id] = index }
        }
        for var control in controls {
            // The attribute `form` decides alone, even if it names no form.
            if let id = control.formID { control.owner = named[id] }
            guard let owner = control.owner else { continue }
            if control.isInDatalist { control.problem = "stands among suggestions, where browsers differ" }
            if control.type == "radio", control.isChecked {
                // Of the buttons of one name the last is selected.
                for index in forms[owner].inputs.indices
                where forms[owner].inputs[index].type == "radio" && forms[owner].inputs[index].name == control.name {
                    forms[owner].inputs[index].isChecked = false
                }
            }
            forms[owner].inputs.append(control)
        }
    }

    static func trimmed(_ text: String) -> String {
        String(Substring(text.utf8.trimmed(\.isASCIIWhitespace)))
    }

    /// Returns text without blanks at its ends, and with one blank for each run of them within.
    static func collapsed(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in text {
            if !byte.isASCIIWhitespace {
                result.append(byte)
            } else if let last = result.last, last != 0x20 {
                result.append(0x20)
            }
        }
        if result.last == 0x20 { result.removeLast() }
        return result
    }
}

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

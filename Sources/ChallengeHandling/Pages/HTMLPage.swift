// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The forms of a page, as far as a login needs them. What stands in comments and scripts is no form.
package struct HTMLPage: Sendable, Equatable {
    /// A form.
    package struct Form: Sendable, Equatable {
        /// Its `action`, not resolved; `nil` where it has none and means the page itself.
        package var action: String?
        /// Its inputs, in order.
        package var inputs: [Input]

        /// A form.
        package init(action: String?, inputs: [Input] = []) {
            self.action = action
            self.inputs = inputs
        }

        /// The path of the action alone: no query, no fragment, no parameters (`;jsessionid=…`).
        package var actionPath: Substring {
            Substring((action ?? "").utf8.prefix { !"?#;".utf8.contains($0) })
        }

        /// Whether it has an input of that name.
        package func hasInput(named name: String) -> Bool { inputs.contains { $0.name == name } }
    }

    /// An input of a form.
    package struct Input: Sendable, Equatable {
        /// Its `name`; empty where it has none.
        package var name: String
        /// Its `type` in lower case; `text` where it has none.
        package var type: String
        /// Its `value`.
        package var value: String

        /// An input.
        package init(name: String, type: String, value: String) {
            self.name = name
            self.type = type
            self.value = value
        }
    }

    /// How much of a page is looked at, in bytes.
    package static let limit = 64 * 1024
    /// How many forms are told apart, and how many inputs of all of them; what comes later is not seen.
    package static let formLimit = 64, inputLimit = 1024

    /// The forms, in order.
    package private(set) var forms: [Form] = []
    /// What the addresses on the page are relative to, where it says so (`<base href>`).
    package private(set) var base: String?

    /// Reads the forms of a page in an encoding that holds ASCII. Any bytes make some page.
    package init(parsing bytes: some Collection<UInt8>) {
        var scanner = HTMLScanner(Array(bytes.prefix(Self.limit)))
        var isInForm = false
        var inputs = 0
        while let tag = scanner.next() {
            switch tag.name {
            case "form" where tag.isEnd:
                isInForm = false
            case "form" where !isInForm:
                // A form within a form is none (WHATWG HTML section 13.2.6.4.7).
                guard forms.count < Self.formLimit else { return }
                forms.append(Form(action: tag["action"].map(Self.trimmed)))
                isInForm = true
            case "input" where isInForm && !tag.isEnd && inputs < Self.inputLimit:
                inputs += 1
                forms[forms.count - 1].inputs.append(
                    Input(
                        name: tag["name"] ?? "", type: tag["type"].map(Self.trimmed)?.lowercased() ?? "text",
                        value: tag["value"] ?? ""))
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

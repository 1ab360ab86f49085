// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension HTMLPage {
    /// Direction of text, which a form may send (`dirname`).
    package enum Direction: Sendable, Equatable {
        case leftToRight, rightToLeft
        /// By the text itself.
        case byText
        /// By text that is not read.
        case unknown
    }

    /// An input of a form, a list, a text area, or a button that submits the form.
    package struct Input: Sendable, Equatable {
        /// The `name`; empty if missing.
        package var name: String
        /// The type in lower case, as scripts see it: that of an input or button, `textarea`, `select-one`, `select-multiple`.
        /// An unknown type of an input is `text`.
        package var type: String
        /// The value in UTF-8, or in the page's bytes as far as these are none of its encoding; `on` for a checkbox or radio
        /// button without one.
        package var bytes: [UInt8]
        /// True if a checkbox or radio button is selected.
        package var isChecked: Bool
        /// The `autocomplete` in lower case; empty if missing.
        package var autocomplete: String
        /// True if the input or a field set around it is disabled, so that a browser does not submit it.
        package var isDisabled: Bool
        /// True if a browser does not submit the form while the input is empty.
        package var isRequired: Bool
        var isReadOnly = false
        /// The words on a button.
        package var label = ""
        /// The options of a list.
        var options: [Option] = []
        /// True if a list shows several options, so that none is selected at first.
        var showsOptions = false
        /// The length at which the browser breaks the lines of a text area.
        var wrapsAt: Int?
        var override = Override()
        /// The name of the entry for the direction.
        var directionName: String?
        var direction = Direction.leftToRight
        /// The largest number of characters that a browser lets a user enter.
        var maximumLength: Int?
        /// A problem that keeps the value from being known, as a sentence.
        var problem: String?
        /// The value of the attribute `form`.
        var formID: String?
        /// The index of the form.
        var owner: Int?
        var isInDatalist = false
        /// The limits of a number.
        var minimum: Double?
        var maximum: Double?

        /// What a button says about the submission in place of the form.
        struct Override: Sendable, Equatable {
            var action: String?
            var method: Form.Method?
            var body: Form.Body?
            var isNotValidated = false
        }

        /// An option of a list.
        struct Option: Sendable, Equatable {
            var value: [UInt8]?
            var text: [UInt8] = []
            var isSelected: Bool
            var isDisabled: Bool
            var isInGroup: Bool
        }

        /// Creates an input.
        package init(
            name: String, type: String, value: String, isChecked: Bool = false, autocomplete: String = "",
            isDisabled: Bool = false, isRequired: Bool = false
        ) {
            self.isRequired = isRequired
            self.name = name
            self.type = type
            bytes = Array(value.utf8)
            self.isChecked = isChecked
            self.autocomplete = autocomplete
            self.isDisabled = isDisabled
        }

        /// The value as text.
        package var value: String { String(decoding: bytes, as: UTF8.self) }

        /// True for a button that submits the form.
        package var isSubmitter: Bool { type == "submit" || type == "image" }

        /// True for a button of any kind.
        package var isButton: Bool { ["submit", "image", "button", "reset"].contains(type) }
    }
}

// Reading.
extension HTMLPage.Input {
    /// Types of `input`. Any other means text.
    private static let types: Set<String> = [
        "button", "checkbox", "color", "date", "datetime-local", "email", "file", "hidden", "image", "month", "number",
        "password", "radio", "range", "reset", "search", "submit", "tel", "text", "time", "url", "week",
    ]

    init(_ attributes: HTMLAttributes, of element: TagName.Element) {
        let written = attributes.word("type") ?? ""
        let type =
            switch element {
            case .button: ["button", "reset"].contains(written) ? written : "submit"
            case .select: attributes.has("multiple") ? "select-multiple" : "select-one"
            case .textarea: "textarea"
            default: Self.types.contains(written) ? written : "text"
            }
        let isBox = type == "checkbox" || type == "radio"
        self.init(
            name: attributes["name"] ?? "", type: type, value: "", isChecked: isBox && attributes.has("checked"),
            autocomplete: attributes.word("autocomplete") ?? "", isDisabled: attributes.has("disabled"),
            isRequired: attributes.has("required"))
        isReadOnly = attributes.has("readonly")
        formID = attributes["form"]
        directionName = attributes["dirname"].flatMap { $0.isEmpty ? nil : $0 }
        maximumLength = attributes["maxlength"].flatMap(InputValue.integer)
        if type == "number" {
            minimum = attributes["min"].flatMap { Double($0) }
            maximum = attributes["max"].flatMap { Double($0) }
        }
        switch element {
        case .select: showsOptions = attributes["size"].flatMap(InputValue.integer).map { $0 > 1 } ?? false
        case .textarea:
            guard attributes.word("wrap") == "hard" else { break }
            wrapsAt = attributes["cols"].flatMap(InputValue.integer).flatMap { $0 > 0 ? $0 : nil } ?? 20
        case .button: bytes = attributes.bytes("value") ?? []
        default:
            let value = InputValue(of: type, attributes)
            bytes = value.bytes
            problem = value.problem
        }
        guard isSubmitter else { return }
        override = Override(
            action: attributes["formaction"].map(HTMLPage.trimmed),
            method: attributes.word("formmethod").map { .init(word: $0) },
            body: attributes.word("formenctype").map { .init(word: $0) },
            isNotValidated: attributes.has("formnovalidate"))
    }
}

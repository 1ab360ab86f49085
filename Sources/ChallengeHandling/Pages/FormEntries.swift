// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Charsets
package import Secrets

/// One name with its value in a submitted form.
package struct FormEntry: Sendable {
    /// The name.
    package var name: String
    /// The value, in UTF-8 as far as it is text.
    package var value: Secret
    /// True for a file that nobody has chosen.
    package var isFile = false

    /// Creates an entry.
    package init(_ name: String, _ value: Secret, isFile: Bool = false) {
        self.name = name
        self.value = value
        self.isFile = isFile
    }
}

extension HTMLPage.Form {
    /// The encoding of the form's entries on a page of `encoding` (WHATWG HTML §4.10.22.5).
    package func charset(on encoding: PageEncoding) -> Charset {
        let labels = (acceptedCharsets ?? "").utf8.split { $0.isASCIIWhitespace || $0 == UInt8(ascii: ",") }
        return (labels.lazy.compactMap { Charset(label: $0) }.first ?? encoding.charset).ofForms
    }

    /// Returns the entries that a browser submits by the first button, in order (WHATWG HTML §4.10.22.4). `filling` returns the
    /// value that is entered into an input; `nil` for none.
    package func entries(
        in charset: Charset, where isIncluded: (HTMLPage.Input) -> Bool = { _ in true },
        filling: (HTMLPage.Input) -> Secret? = { _ in nil }
    ) -> [FormEntry] {
        var entries: [FormEntry] = []
        let submitter = inputs.firstIndex { $0.isSubmitter && !$0.isDisabled }
        for (index, input) in inputs.enumerated() where !input.isDisabled && isIncluded(input) {
            if input.isButton, index != submitter { continue }
            if input.type == "checkbox" || input.type == "radio", !input.isChecked, filling(input) == nil { continue }
            if input.type == "image" {
                let prefix = input.name.isEmpty ? "" : "\(input.name)."
                entries += ["x", "y"].map { FormEntry(prefix + $0, Secret("0")) }
                continue
            }
            guard !input.name.isEmpty else { continue }
            let filled = filling(input)
            switch input.type {
            case "select-one", "select-multiple":
                if let filled {
                    entries.append(FormEntry(input.name, filled))
                } else {
                    entries += input.selectedValues.map { FormEntry(input.name, Secret($0)) }
                }
            case "file": entries.append(FormEntry(input.name, filled ?? Secret(""), isFile: filled == nil))
            case "hidden" where input.name.lowercased() == "_charset_" && filled == nil:
                entries.append(FormEntry(input.name, Secret(charset.name)))
            default: entries.append(FormEntry(input.name, filled ?? Secret(input.bytes)))
            }
            if let name = input.directionName, input.hasDirection {
                let isReversed = input.isRightToLeft(filled?.revealText() ?? input.value)
                entries.append(FormEntry(name, Secret(isReversed ? "rtl" : "ltr")))
            }
        }
        return entries
    }
}

extension HTMLPage.Input {
    /// The values of the options that are selected at first (WHATWG HTML §4.10.7).
    package var selectedValues: [[UInt8]] {
        selectedOptions.filter { !options[$0].isDisabled }.map { value(of: options[$0]) }
    }

    private var selectedOptions: [Int] {
        let isSingle = type == "select-one"
        let selected = options.indices.filter { options[$0].isSelected }
        if isSingle, let last = selected.last { return [last] }
        guard isSingle, !showsOptions, selected.isEmpty, let first = options.firstIndex(where: { !$0.isDisabled })
        else {
            return selected
        }
        return [first]
    }

    private func value(of option: Option) -> [UInt8] { option.value ?? option.text }

    /// True if a browser takes the input for empty.
    package var isEmpty: Bool {
        switch type {
        case "checkbox", "radio": !isChecked
        case "select-one":
            // The first option without a value only says what to choose.
            selectedOptions.isEmpty
                || selectedOptions == [0] && !showsOptions && !options[0].isInGroup && value(of: options[0]).isEmpty
        case "select-multiple": selectedOptions.isEmpty
        case "file": true
        default: bytes.isEmpty
        }
    }

    /// True for inputs that have a direction (`dirname`).
    fileprivate var hasDirection: Bool {
        ["hidden", "text", "search", "tel", "url", "email", "password", "submit", "textarea"].contains(type)
    }

    fileprivate func isRightToLeft(_ text: String) -> Bool {
        guard direction == .byText else { return direction == .rightToLeft }
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x5BE...0x8FF where scalar.properties.isAlphabetic, 0xFB1D...0xFDFF, 0xFE70...0xFEFF,
                0x10800...0x10FFF,
                0x1E800...0x1EFFF:
                return true
            default: if scalar.properties.isAlphabetic { return false }
            }
        }
        return false
    }
}

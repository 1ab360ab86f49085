// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Charsets
package import Secrets

/// Differences between what is submitted and what a browser would submit. A refusal then says nothing about the credential
/// (CONTRIBUTING, rule 3).
package struct FormFaults {
    let form: HTMLPage.Form
    let page: HTMLPage
    /// Names of the inputs that the credential or the configuration fills in.
    let filled: Set<String>
    /// True if only hidden inputs and the button are sent beside these.
    let omitsVisible: Bool

    /// Creates the checks of a form that is filled in and submitted by its button.
    package init(
        form: HTMLPage.Form, page: HTMLPage, filled: Set<String>, omitsVisible: Bool = false
    ) {
        self.form = form
        self.page = page
        self.filled = filled
        self.omitsVisible = omitsVisible
    }

    /// Returns the reason why a browser would not send the form, or why the daemon cannot: a sentence without its end. `nil` if
    /// the form can be sent.
    package var objection: String? {
        if !form.isEnded, !page.isWhole {
            return "is not whole: only the first \(HTMLPage.limit / 1024) KiB of the page, and at most "
                + "\(HTMLPage.inputLimit) of its inputs, are read"
        }
        if form.method == .dialog { return "has the method `dialog`, by which a browser sends nothing" }
        for input in form.inputs where isSent(input) {
            if let problem = input.problem { return "has the field \(Self.name(of: input)), which \(problem)" }
            if let width = input.wrapsAt, Self.hasLine(of: input, longerThan: width) {
                return "has the field \(Self.name(of: input)), whose lines a browser breaks"
            }
            if input.directionName != nil, input.direction == .unknown {
                return "has the field \(Self.name(of: input)), whose direction depends on other text"
            }
        }
        guard form.isValidated else { return nil }
        for input in form.inputs where !input.isDisabled && !input.isReadOnly && !filled.contains(input.name) {
            if let problem = input.invalidity(of: input.value) {
                return "has the field \(Self.name(of: input)), \(problem)"
            }
        }
        let missing = form.inputs.first { input in
            input.isRequired && !input.isReadOnly && !input.isDisabled && !filled.contains(input.name)
                && input.type != "hidden" && !input.isButton && isMissing(input)
        }
        return missing.map { "requires the field \(Self.name(of: $0)), which is empty" }
    }

    /// Returns the differences of a submission that was sent, as sentences. `values` are the texts that fill in the inputs.
    func differences(with values: [Secret]) -> [String] {
        var faults: [String] = []
        if omitsVisible {
            for input in form.inputs where !input.isDisabled && input.type != "hidden" && !filled.contains(input.name) {
                guard !input.isButton, !input.isEmpty, !input.name.isEmpty else { continue }
                faults.append("the field \(Self.name(of: input)) of the form was not submitted")
            }
        }
        if form.submitter == nil, form.inputs.contains(where: { $0.isSubmitter && $0.isDisabled }) {
            faults.append("a script of the page enables the button of the form")
        }
        let charset = form.charset(on: page.encoding)
        let isAssumed = page.encoding.isAssumed && charset == page.encoding.charset
        for value in values {
            let bytes = value.revealBytes()
            guard bytes.contains(where: { $0 >= 0x80 }) else { continue }
            var isWhole = true
            _ = charset.encoded(bytes, isWhole: &isWhole)
            if !isWhole {
                faults.append("a value has characters that the form's character set \(charset.name) lacks")
            } else if isAssumed {
                faults.append(
                    "the page names no character set, and a value with other characters was sent in \(charset.name)")
            }
        }
        for input in form.inputs where filled.contains(input.name) {
            guard let limit = input.maximumLength, !["select-one", "select-multiple", "hidden"].contains(input.type),
                values.contains(where: { String(decoding: $0.revealBytes(), as: UTF8.self).utf16.count > limit })
            else { continue }
            faults.append("a browser enters at most \(limit) characters into the field \(Self.name(of: input))")
        }
        return faults
    }

    /// Returns the reason why a browser would not let `value` be entered as the user's name; `nil` if it would.
    package func objection(toEntering value: Secret, into name: String) -> String? {
        guard form.isValidated, let input = form.inputs.first(where: { $0.name == name && !$0.isDisabled }) else {
            return nil
        }
        return input.invalidity(of: value.revealText()).map { "has the field \(Self.name(of: input)), \($0)" }
    }

    private func isSent(_ input: HTMLPage.Input) -> Bool {
        !input.isDisabled && !input.name.isEmpty && !filled.contains(input.name)
            && (!omitsVisible || input.type == "hidden")
    }

    private func isMissing(_ input: HTMLPage.Input) -> Bool {
        guard input.type == "radio" else { return input.isEmpty }
        return !form.inputs.contains { $0.type == "radio" && $0.name == input.name && $0.isChecked }
    }

    private static func hasLine(of input: HTMLPage.Input, longerThan width: Int) -> Bool {
        input.bytes.split(separator: 0x0A).contains { $0.count > width }
    }

    private static func name(of input: HTMLPage.Input) -> String {
        input.name.isEmpty ? "without a name" : ServerText.name(input.name)
    }
}

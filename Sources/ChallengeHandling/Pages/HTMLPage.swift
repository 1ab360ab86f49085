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

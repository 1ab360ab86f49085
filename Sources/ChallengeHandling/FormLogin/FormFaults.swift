// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Differences between what is submitted and what a browser would submit. A refusal then says nothing about the credential
/// (CONTRIBUTING, rule 3).
enum FormFaults {
    /// Returns the differences for `form` on `page`, as sentences. `values` are the texts that fill in the inputs.
    static func of(_ form: HTMLPage.Form, on page: ExaminedResponse, filling filled: Set<String>, with values: [Secret])
        -> [String]
    {
        var faults: [String] = []
        if !form.isEnded, let body = page.body, body.count >= HTMLPage.limit {
            faults.append("only the first \(HTMLPage.limit / 1024) KiB of the login page were read, not the whole form")
        }
        for name in form.unfilled.sorted() where !filled.contains(name) {
            faults.append("the field \(ServerText.name(name)) of the form was not submitted")
        }
        for input in form.inputs
        where input.isRequired && input.value.isEmpty && !input.isDisabled && !filled.contains(input.name)
            && !["hidden", "submit", "button", "image", "reset"].contains(input.type)
        {
            let name = input.name.isEmpty ? "without a name" : ServerText.name(input.name)
            faults.append("the form requires the field \(name), which is empty")
        }
        if let charset = page.charset, charset != "utf-8", charset != "utf8",
            values.contains(where: { $0.revealBytes().contains { $0 >= 0x80 } })
        {
            faults.append(
                "the page has the character set \(ServerText.name(charset)), and a value with other characters was sent in UTF-8"
            )
        }
        return faults
    }
}

extension ExaminedResponse {
    /// The `charset` of the media type in lower case (RFC 9110 §8.3.2); `nil` without one.
    fileprivate var charset: String? {
        guard let type = fields[.contentType]?.prefix(256).lowercased(),
            let start = type.range(of: "charset=")
        else { return nil }
        let value = type[start.upperBound...].prefix { $0 != ";" && $0 != " " }.filter { $0 != "\"" }
        return value.isEmpty ? nil : String(value)
    }
}

extension String {
    /// Returns the range of the first occurrence of `text`.
    fileprivate func range(of text: String) -> Range<Index>? {
        let (bytes, word) = (utf8, Array(text.utf8))
        var start = bytes.startIndex
        while start != bytes.endIndex {
            if bytes[start...].starts(with: word) {
                return start..<bytes.index(start, offsetBy: word.count)
            }
            start = bytes.index(after: start)
        }
        return nil
    }
}

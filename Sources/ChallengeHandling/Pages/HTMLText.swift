// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Character references in HTML (WHATWG HTML section 13.2.5.72): numbers, and the names that escaping functions write.
enum HTMLText {
    private static let names: [Substring: Character] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": "\u{A0}", "sol": "/", "colon": ":",
        "equals": "=", "plus": "+", "num": "#", "lowbar": "_", "period": ".", "comma": ",", "semi": ";", "quest": "?",
        "percnt": "%", "lpar": "(", "rpar": ")", "excl": "!", "ast": "*", "commat": "@", "dollar": "$", "Tab": "\t",
        "NewLine": "\n", "grave": "`", "lbrace": "{", "rbrace": "}", "lsqb": "[", "rsqb": "]", "bsol": "\\",
    ]

    /// `text` with its references replaced; what is none stays as it is.
    static func decoded(_ text: String) -> String {
        guard text.contains("&") else { return text }
        var decoded = ""
        var rest = text[...]
        while let sign = rest.firstIndex(of: "&") {
            decoded += rest[..<sign]
            rest = rest[rest.index(after: sign)...]
            let reference = rest.prefix(12).prefix { $0 != ";" }
            let end = reference.endIndex
            guard end < rest.endIndex, rest[end] == ";", let character = character(reference) else {
                decoded.append("&")
                continue
            }
            decoded.append(character)
            rest = rest[rest.index(after: end)...]
        }
        return decoded + rest
    }

    private static func character(_ reference: Substring) -> Character? {
        guard reference.hasPrefix("#") else { return names[reference] }
        let number = reference.dropFirst()
        let isHexadecimal = number.first == "x" || number.first == "X"
        let digits = isHexadecimal ? number.dropFirst() : number
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }),
            let value = UInt32(digits, radix: isHexadecimal ? 16 : 10), value != 0
        else { return nil }
        return Unicode.Scalar(value).map(Character.init)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Character references in HTML (WHATWG HTML section 13.2.5.72): numbers, and the names that escaping functions write.
enum HTMLText {
    private static let names: [String: Unicode.Scalar] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": "\u{A0}", "sol": "/", "colon": ":",
        "equals": "=", "plus": "+", "num": "#", "lowbar": "_", "period": ".", "comma": ",", "semi": ";", "quest": "?",
        "percnt": "%", "lpar": "(", "rpar": ")", "excl": "!", "ast": "*", "commat": "@", "dollar": "$", "Tab": "\t",
        "NewLine": "\n", "grave": "`", "lbrace": "{", "rbrace": "}", "lsqb": "[", "rsqb": "]", "bsol": "\\",
    ]

    /// `text` with its references replaced; what is none stays as it is.
    static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var decoded: [UInt8] = []
        // By bytes: a sign with an accent behind it is one `Character` with that.
        var rest = Array(text.utf8)[...]
        while let sign = rest.firstIndex(of: UInt8(ascii: "&")) {
            decoded += rest[..<sign]
            rest = rest[(sign + 1)...]
            let reference = rest.prefix(12).prefix { $0 != UInt8(ascii: ";") }
            let end = reference.endIndex
            guard end < rest.endIndex, rest[end] == UInt8(ascii: ";"),
                let scalar = scalar(String(decoding: reference, as: UTF8.self))
            else {
                decoded.append(UInt8(ascii: "&"))
                continue
            }
            decoded += String(scalar).utf8
            rest = rest[(end + 1)...]
        }
        return String(decoding: decoded + rest, as: UTF8.self)
    }

    private static func scalar(_ reference: String) -> Unicode.Scalar? {
        guard reference.hasPrefix("#") else { return names[reference] }
        let number = reference.dropFirst()
        let isHexadecimal = number.first == "x" || number.first == "X"
        let digits = isHexadecimal ? number.dropFirst() : number
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }),
            let value = UInt32(digits, radix: isHexadecimal ? 16 : 10), value != 0
        else { return nil }
        return Unicode.Scalar(value)
    }
}

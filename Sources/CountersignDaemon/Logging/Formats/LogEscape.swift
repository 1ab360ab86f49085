// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Keeps text of callers and upstreams from meaning anything in a log: no line break, no terminal sequence, no
/// invisible or reordering sign gets through as itself.
enum LogEscape {
    /// Appends `value` with `\n`, `\"`, `\\` and `\u{202E}` for what must not stand there.
    static func append(_ value: String, to text: inout String) {
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where isHarmful(scalar): text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    /// Appends `value` as a JSON string (RFC 8259 section 7), in its quotes; what is harmful on a terminal is escaped too.
    static func appendJSON(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where isHarmful(scalar):
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
                }
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }

    /// Control characters (C0, DEL, C1), line and paragraph separators, and formatting signs: bidirectional overrides,
    /// zero-width characters, tags.
    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// HTML as it is written: markup is constant, all else is escaped.
struct HTMLText {
    /// What was written.
    private(set) var text = ""

    /// Appends markup, which cannot hold anything from outside.
    mutating func markup(_ markup: StaticString) { text += "\(markup)" }

    /// Appends text, for between tags and within quoted attributes alike.
    mutating func escaped(_ words: String) {
        for scalar in words.unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "'": text += "&#39;"
            // Controls, and what turns the direction of the text around it.
            case "\0"..."\u{8}", "\u{B}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{202A}"..."\u{202E}",
                "\u{2066}"..."\u{2069}":
                text += "\u{FFFD}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    /// Appends an element that holds nothing but text.
    mutating func element(_ open: StaticString, _ words: String, _ close: StaticString) {
        markup(open)
        escaped(words)
        markup(close)
    }

    /// Appends a state with its colour.
    mutating func pill(_ tone: Tone, _ words: String) {
        switch tone {
        case .good: markup("<span class=\"pill good\">")
        case .busy: markup("<span class=\"pill busy\">")
        case .quiet: markup("<span class=\"pill quiet\">")
        case .bad: markup("<span class=\"pill bad\">")
        }
        escaped(words)
        markup("</span>")
    }

    /// How a state is to be taken.
    enum Tone {
        case good, busy, quiet, bad
    }
}

/// A time as people read it, of milliseconds: "850 ms", "4.2 s", "3 min", "2 h 5 min", "6 d 4 h".
func readableTime(milliseconds: Int64) -> String {
    switch milliseconds {
    case ..<1000: "\(max(0, milliseconds)) ms"
    case ..<10_000: "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s"
    case ..<120_000: "\(milliseconds / 1000) s"
    case ..<7_200_000: "\(milliseconds / 60_000) min"
    case ..<172_800_000: "\(milliseconds / 3_600_000) h \(milliseconds / 60_000 % 60) min"
    default: "\(milliseconds / 86_400_000) d \(milliseconds / 3_600_000 % 24) h"
    }
}

/// A number as people read it: in groups of three digits.
func readableNumber(_ number: UInt64) -> String {
    let digits = Array(String(number))
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
        text.append(digit)
    }
    return text
}

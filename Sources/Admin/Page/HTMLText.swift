// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A writer of HTML: markup is constant, all other text is escaped.
struct HTMLText {
    /// The text so far.
    private(set) var text = ""

    /// Appends markup, which is constant.
    mutating func markup(_ markup: StaticString) { text += "\(markup)" }

    /// Appends text, escaped for content and quoted attributes.
    mutating func escaped(_ words: String) {
        for scalar in words.unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "'": text += "&#39;"
            // Control characters, and characters that change the direction of the surrounding text.
            case "\0"..."\u{8}", "\u{B}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{202A}"..."\u{202E}",
                "\u{2066}"..."\u{2069}":
                text += "\u{FFFD}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }

    /// Appends an element that contains only text.
    mutating func element(_ open: StaticString, _ words: String, _ close: StaticString) {
        markup(open)
        escaped(words)
        markup(close)
    }

    /// Appends a state with its color.
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

    /// The color of a state.
    enum Tone {
        case good, busy, quiet, bad
    }
}

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

/// Returns a time for people, from milliseconds: "850 ms", "4.2 s", "3 min", "2 h 5 min", "6 d 4 h".
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

/// Returns a number for people, in groups of three digits.
func readableNumber(_ number: UInt64) -> String {
    let digits = Array(String(number))
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
        text.append(digit)
    }
    return text
}

/// A small line chart as inline SVG, with gaps for missing numbers.
struct Plot {
    private static let width = 240.0
    private static let height = 48.0

    /// The numbers, the oldest first.
    var values: [Double?]
    /// A description for screen readers.
    var label: String

    func write(to page: inout HTMLText) {
        page.markup("<svg viewBox=\"0 0 240 48\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"")
        page.escaped(label)
        page.markup("\">")
        let known = values.compactMap(\.self)
        if let most = known.max(), values.count > 1 {
            page.markup("<path class=\"line\" d=\"")
            page.escaped(path(most: most))
            page.markup("\"/>")
        }
        page.markup("</svg>")
    }

    private func path(most: Double) -> String {
        var path = ""
        var isDrawing = false
        for (index, value) in values.enumerated() {
            guard let value, value.isFinite else {
                isDrawing = false
                continue
            }
            let x = Double(index) * Self.width / Double(values.count - 1)
            let y = most > 0 ? Self.height - 2 - value / most * (Self.height - 4) : Self.height - 2
            // A single point between gaps is a line of zero length, of which the round ends are visible.
            path += isDrawing ? "L" : "M"
            path += "\(Self.rounded(x)) \(Self.rounded(y))"
            if !isDrawing { path += "h0" }
            isDrawing = true
        }
        return path
    }

    private static func rounded(_ number: Double) -> Double { (number * 10).rounded() / 10 }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Glibc

/// Lines for people. For a terminal they are wrapped at its width; for a program they are not.
enum Terminal {
    private static let usual = 80, narrowest = 40

    /// Writes a line to standard output.
    static func print(_ text: String) {
        let line = text.harmless
        guard isatty(STDOUT_FILENO) == 1 else { return Process.print(line) }
        for part in wrapped(line, at: columns) { Process.print(part) }
    }

    /// Writes a line to standard error.
    static func printError(_ text: String) {
        let line = text.harmless
        guard isatty(STDERR_FILENO) == 1 else { return Process.printError(line) }
        for part in wrapped(line, at: columns) { Process.printError(part) }
    }

    private static var columns: Int {
        max(narrowest, Process.environment["COLUMNS"].flatMap { Int($0) } ?? usual)
    }

    /// Returns the line in parts of at most `columns` characters, broken at blanks.
    ///
    /// Later parts begin below the text after the first wide gap, as in `latch     text`, or two columns to the right
    /// of the line's beginning. A word that is wider is not broken: a path or an address could not be copied.
    static func wrapped(_ line: String, at columns: Int) -> [String] {
        guard line.count > columns else { return [line] }
        let indent = String(repeating: " ", count: min(indentation(of: line), columns / 2))
        var parts: [String] = []
        var part = String(line.prefix { $0 == " " })
        var isEmpty = true
        for word in line.dropFirst(part.count).split(separator: " ", omittingEmptySubsequences: false) {
            if !isEmpty, part.count + 1 + word.count > columns {
                parts.append(part)
                part = indent + word
            } else {
                part += (isEmpty ? "" : " ") + word
            }
            isEmpty = false
        }
        return (parts + [part]).map { part in
            String(part.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// Returns the column of the text after the first gap of two blanks or more, if it follows the first word.
    private static func indentation(of line: String) -> Int {
        let start = line.prefix { $0 == " " }.count
        let word = line.dropFirst(start).prefix { $0 != " " }.count
        let gap = line.dropFirst(start + word).prefix { $0 == " " }.count
        return gap >= 2 ? start + word + gap : start + 2
    }
}

extension String {
    /// The text without what controls a terminal, besides line ends and tabs.
    ///
    /// Another process has written a part of most lines, and need not be trusted.
    var harmless: String {
        guard unicodeScalars.contains(where: Self.isHarmful) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.filter { !Self.isHarmful($0) }))
    }

    /// The JSON text with escapes in place of such characters, which stand only in its strings.
    var harmlessJSON: String {
        guard unicodeScalars.contains(where: Self.isHarmful) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if Self.isHarmful(scalar) {
                for unit in String(scalar).utf16 { text += "\\u\(Hex.encode(unit))" }
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        scalar != "\n" && scalar != "\t" && LogEscape.isHarmful(scalar)
    }
}

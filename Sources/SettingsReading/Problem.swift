// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Something wrong with a configuration: what, where, and what to do.
package struct Problem: Error, Sendable, Hashable {
    /// The weight of a problem.
    package enum Severity: Sendable, Hashable {
        /// It cannot.
        case error
        /// It can, but probably not as it was meant.
        case warning
    }

    /// The file, as it was named.
    package var file: String
    /// The place in it; `nil` where the file itself is the problem.
    package var mark: Mark?
    /// The way to the value: `listeners[0].routes[1].path`; empty for the whole file.
    package var keyPath: String
    /// The fault, and the remedy.
    package var message: String
    /// Its weight.
    package var severity: Severity

    /// A problem.
    package init(file: String, mark: Mark?, keyPath: String, message: String, severity: Severity) {
        self.file = file
        self.mark = mark
        self.keyPath = keyPath
        self.message = message
        self.severity = severity
    }
}

/// A place in a file, both counted from 1.
package struct Mark: Sendable, Hashable, Comparable {
    /// The line.
    package var line: Int
    /// The column, in characters.
    package var column: Int

    /// A place.
    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// True if one place stands before another.
    package static func < (left: Mark, right: Mark) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

extension Problem: CustomStringConvertible {
    /// `FILE:LINE:COL: key.path: message`, the message of a warning led by that word. One line, whatever keys and values of
    /// the file it quotes: their controls and line ends are written as `\u000A`.
    package var description: String {
        let place = mark.map { "\(file):\($0.line):\($0.column)" } ?? file
        let path = keyPath.isEmpty ? "" : "\(keyPath): "
        return escaped("\(place): \(path)\(severity == .warning ? "warning: " : "")\(message)")
    }

    private func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        var line = ""
        for scalar in text.unicodeScalars {
            guard isControl(scalar) else {
                line.unicodeScalars.append(scalar)
                continue
            }
            let digits = String(scalar.value, radix: 16, uppercase: true)
            line += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
        }
        return line
    }

    private func isControl(_ scalar: Unicode.Scalar) -> Bool {
        // Most are, and the tables of the others are slow.
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}

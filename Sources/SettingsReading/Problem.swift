// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Problem of a configuration: its location, its fault, and a remedy.
package struct Problem: Error, Sendable, Hashable {
    /// Severity of a problem.
    package enum Severity: Sendable, Hashable {
        /// The file cannot be used.
        case error
        /// The file can be used, but probably not as intended.
        case warning
    }

    /// File, as the user named it.
    package var file: String
    /// Position in the file; nil if the file itself is the problem.
    package var mark: Mark?
    /// Key path of the value: `listeners[0].routes[1].path`; empty for the whole file.
    package var keyPath: String
    /// Fault and remedy.
    package var message: String
    /// Severity.
    package var severity: Severity
    /// True if the cause may pass by itself, like a lack of descriptors: nothing is known about the file then.
    package var mayPass = false

    /// Creates a problem.
    package init(file: String, mark: Mark?, keyPath: String, message: String, severity: Severity) {
        self.file = file
        self.mark = mark
        self.keyPath = keyPath
        self.message = message
        self.severity = severity
    }
}

/// Position in a file, counted from 1.
package struct Mark: Sendable, Hashable, Comparable {
    /// Line.
    package var line: Int
    /// Column, in characters.
    package var column: Int

    /// Creates a position.
    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// Orders positions by line, then by column.
    package static func < (left: Mark, right: Mark) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}

extension Problem: CustomStringConvertible {
    /// `FILE:LINE:COL: key.path: message`, on one line.
    ///
    /// A warning's message begins with `warning:`. Control characters and line ends of quoted keys and values are written as
    /// `\u000A`.
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
        // Most characters are ASCII, and the Unicode tables are slow.
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A file of variables as systemd's `EnvironmentFile=` reads it (systemd.exec(5)): `NAME=value` in lines, `#` and `;` before a
/// comment, quotes around values, a backslash before what is meant literally and before the end of a line that goes on.
struct EnvironmentFile: ~Copyable {
    /// What is wrong in it.
    struct Fault: Error, Equatable {
        /// In which line, from 1.
        var line: Int
        /// What; no value.
        var reason: String
    }

    private enum State: Equatable {
        case name, beforeValue, value, escaped, singleQuoted, doubleQuoted, escapedInQuotes, comment
    }

    /// The value of each variable; of one that stands there twice the last.
    private(set) var variables: [String: Secret] = [:]
    private var state = State.name
    private var name: [UInt8] = []
    private var value = SecretBuilder()
    /// White space of an unquoted value that belongs to it only if something follows.
    private var pending: [UInt8] = []
    private var line = 1
    private var opened = 1

    /// The variables that `content` sets. Throws where a quote does not end: the file may be half written.
    static func variables(in content: Secret) throws(Fault) -> [String: Secret] {
        var file = EnvironmentFile()
        content.withBytes { bytes in
            for index in bytes.indices { file.take(bytes[index]) }
        }
        if file.state == .singleQuoted || file.state == .doubleQuoted || file.state == .escapedInQuotes {
            throw Fault(line: file.opened, reason: "a quote begins that does not end")
        }
        file.endLine()
        return file.variables
    }

    private init() {}

    private mutating func take(_ byte: UInt8) {
        let isNewline = byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        let isBlank = byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
        if byte == UInt8(ascii: "\n") { line += 1 }
        switch state {
        case .name:
            if isNewline {
                name = []
            } else if name.isEmpty, byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") {
                state = .comment
            } else if byte == UInt8(ascii: "=") {
                state = .beforeValue
            } else if !(name.isEmpty && isBlank) {
                name.append(byte)
            }
        case .comment:
            if isNewline { state = .name }
        case .beforeValue, .value:
            takeValue(byte, isNewline: isNewline, isBlank: isBlank)
        case .escaped:
            // The end of a line vanishes, so that the value goes on in the next.
            if !isNewline { append(byte) }
            state = .value
        case .singleQuoted:
            if byte == UInt8(ascii: "'") { state = .beforeValue } else { append(byte) }
        case .doubleQuoted:
            switch byte {
            case UInt8(ascii: "\""): state = .beforeValue
            case UInt8(ascii: "\\"): state = .escapedInQuotes
            default: append(byte)
            }
        case .escapedInQuotes:
            if !isNewline {
                if ![UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "`"), UInt8(ascii: "$")].contains(byte) {
                    append(UInt8(ascii: "\\"))
                }
                append(byte)
            }
            state = .doubleQuoted
        }
    }

    private mutating func takeValue(_ byte: UInt8, isNewline: Bool, isBlank: Bool) {
        if isNewline {
            endLine()
            return
        }
        switch byte {
        case UInt8(ascii: "'") where state == .beforeValue: (state, opened) = (.singleQuoted, line)
        case UInt8(ascii: "\"") where state == .beforeValue: (state, opened) = (.doubleQuoted, line)
        case UInt8(ascii: "\\"): state = .escaped
        case _ where isBlank: if state == .value { pending.append(byte) }
        default:
            state = .value
            append(byte)
        }
    }

    private mutating func append(_ byte: UInt8) {
        for blank in pending { value.append(blank) }
        pending = []
        value.append(byte)
    }

    /// A line is over, and the variable that it sets is known.
    private mutating func endLine() {
        while let last = name.last, last == UInt8(ascii: " ") || last == UInt8(ascii: "\t") { name.removeLast() }
        var finished = SecretBuilder()
        swap(&finished, &value)
        if state != .name, state != .comment, !name.isEmpty {
            variables[String(decoding: name, as: UTF8.self)] = finished.finish()
        }
        name = []
        pending = []
        state = .name
    }
}

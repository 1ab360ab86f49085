// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// Credentials from an environment file, named as in `EnvironmentSource`.
///
/// A service cannot read its own environment again. This file is read at each lookup, so a changed value takes effect without a
/// restart. Only the owner of the file may have access, and the owner must be this process's user or root.
package struct EnvironmentFileSource: CredentialLookup {
    private let path: String
    private let trust: FileTrust

    /// Creates a source that reads the file at `path`; `trust` names further trusted owners.
    package init(path: String, trust: FileTrust = .none) { (self.path, self.trust) = (path, trust) }

    /// The state of the environment file.
    package var files: FileStates { FileStates(of: [path]) }

    /// Returns the variables that begin with this name, as fields.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        try EnvironmentSource(variables: variables()).credential(named: name)
    }

    /// Returns an instruction with the names of the variables.
    package func way(toAdd fields: [String], of name: String) -> String? {
        "write \(EnvironmentSource.variables(fields, of: name)) into the environment file (source `env`)"
    }

    /// Returns a description with the names of the variables and the path of the file.
    package func source(of fields: [String], of name: String) -> AnsweringSource? {
        AnsweringSource(
            kind: "the environment file", name: "the environment file \(path)",
            change: "Change \(EnvironmentSource.variables(fields, of: name)) there; the daemon notices that.")
    }

    /// Reads the file to check access to it, and returns its number of fields.
    package func open() throws(CredentialError) -> Int { try EnvironmentSource(variables: variables()).count }

    private func variables() throws(CredentialError) -> [String: Secret] {
        do {
            return try EnvironmentFile.variables(in: try PrivateFile(path: path, trust: trust.trust(in: path)).read())
        } catch let fault as FileFault {
            throw unusable(fault.reason)
        } catch let fault as EnvironmentFile.Fault {
            throw unusable("\(path):\(fault.line): \(fault.reason)")
        } catch {
            throw unusable("\(path) cannot be read")
        }
    }

    private func unusable(_ reason: String) -> CredentialError {
        CredentialError(
            reason: reason,
            publicReason:
                "The environment file with credentials cannot be used. See the daemon's log for the file and the reason."
        )
    }
}

/// Parser of an environment file, in the format of systemd's `EnvironmentFile=` (systemd.exec(5)).
///
/// A line is `NAME=value`. `#` and `;` begin a comment, and quotes enclose a value. A backslash escapes the next character; at the
/// end of a line, the value continues on the next line.
struct EnvironmentFile: ~Copyable {
    /// A syntax error in the file.
    struct Fault: Error, Equatable {
        /// The number of the line, from 1.
        var line: Int
        /// The reason, without any value.
        var reason: String
    }

    private enum State: Equatable {
        case name, beforeValue, value, escaped, singleQuoted, doubleQuoted, escapedInQuotes, comment
    }

    /// The value of each variable. The last assignment counts.
    private(set) var variables: [String: Secret] = [:]
    private var state = State.name
    private var name: [UInt8] = []
    private var value = SecretBuilder()
    /// Whitespace after an unquoted value; part of the value only if more characters follow.
    private var pending: [UInt8] = []
    private var line = 1
    private var opened = 1

    /// Returns the variables that `content` sets.
    ///
    /// Throws for an unterminated quote, because the file may be incomplete.
    static func variables(in content: Secret) throws(Fault) -> [String: Secret] {
        var file = EnvironmentFile()
        content.withBytes { bytes in
            for index in bytes.indices { file.consume(bytes[index]) }
        }
        if file.state == .singleQuoted || file.state == .doubleQuoted || file.state == .escapedInQuotes {
            throw Fault(line: file.opened, reason: "unterminated quote")
        }
        file.endLine()
        return file.variables
    }

    private init() {}

    private mutating func consume(_ byte: UInt8) {
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
            consumeValue(byte, isNewline: isNewline, isBlank: isBlank)
        case .escaped:
            // An escaped line break is removed, and the value continues on the next line.
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

    private mutating func consumeValue(_ byte: UInt8, isNewline: Bool, isBlank: Bool) {
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

    /// Ends a line and stores the variable that the line sets.
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Secrets

/// A login page of Tests/Scripts/form-submissions, and what the browser sent when its form was submitted.
package struct SubmittedForm: Sendable, CustomStringConvertible {
    /// Result of submitting the form by the program's own reader.
    package enum Outcome: Sendable, Equatable {
        case same
        /// Nothing would be sent, and the reason is told.
        case refused(String)
        case different(String)
    }

    private let columns: [[UInt8]]
    private let written: [String]

    /// Reads one line of the table.
    package init(_ row: [String]) {
        written = row
        columns = row.map(Self.unescaped)
    }

    /// The page as the table has it.
    package var description: String { written.indices.contains(3) ? "\(written[2]): \(written[3])" : "\(written)" }

    /// True if the browser sent nothing.
    package var isHeld: Bool { text(4) == "none" }

    /// Returns how the program's own submission compares with the browser's.
    package var outcome: Outcome {
        guard columns.count == 8 else { return .different("a line of \(columns.count) columns") }
        let page = HTMLPage(parsing: columns[3], type: text(2))
        guard let form = page.forms.first(where: { $0.hasInput(named: "pass") }) else { return .refused("no form") }
        let faults = FormFaults(form: form, page: page, filled: ["user", "pass"])
        if let objection = faults.objection ?? faults.objection(toEntering: Secret(text(0)), into: "user") {
            return .refused(objection)
        }
        let charset = form.charset(on: page.encoding)
        let (user, password) = (Secret(text(0)), Secret(text(1)))
        let entries = form.entries(
            in: charset, filling: { $0.name == "user" ? user : $0.name == "pass" ? password : nil })
        let submission = FormSubmission(entries, as: form.body, in: charset)
        let target = target(of: form, on: page)
        guard form.isPost else {
            guard let query = submission.query() else { return .refused("the character set") }
            return compare(["GET", "\(target.prefix { $0 != "?" })?\(query.revealText())", ""], [])
        }
        guard let (type, body) = submission.encoded() else { return .refused("the character set") }
        guard type.hasPrefix("multipart") else { return compare(["POST", target, type], body.revealBytes()) }
        let boundary = type.split(separator: "=").last.map { Array($0.utf8) } ?? []
        let plain = Self.replacing(boundary, in: body.revealBytes())
        return compare(["POST", target, "multipart/form-data; boundary=-"], plain)
    }

    private func compare(_ head: [String], _ body: [UInt8]) -> Outcome {
        let isSame = zip(head, [4, 5, 6]).allSatisfy { $0 == text($1) } && body == columns[7]
        let sent = body.map { (0x20..<0x7F).contains($0) ? String(UnicodeScalar($0)) : "\\x\(String($0, radix: 16))" }
        return isSame ? .same : .different("\(head) \(sent.joined()), not \(written[4...])")
    }

    /// Returns the target of the form on the page `/page/x`. The table's pages have simple addresses only.
    private func target(of form: HTMLPage.Form, on page: HTMLPage) -> String {
        let action = String((form.action ?? "").prefix { $0 != "#" })
        if action.isEmpty { return "/page/x" }
        return action.hasPrefix("/") ? action : (page.base ?? "/page/") + action
    }

    private func text(_ column: Int) -> String {
        columns.indices.contains(column) ? String(decoding: columns[column], as: UTF8.self) : ""
    }

    private static func replacing(_ boundary: [UInt8], in bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if !boundary.isEmpty, bytes[index...].starts(with: boundary) {
                result.append(UInt8(ascii: "-"))
                index += boundary.count
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    private static func unescaped(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), rest.first == UInt8(ascii: "x"),
                let code = UInt8(String(decoding: rest.dropFirst().prefix(2), as: UTF8.self), radix: 16)
            {
                result.append(code)
                rest = rest.dropFirst(3)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

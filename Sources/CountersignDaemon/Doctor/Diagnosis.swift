// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// Finding of one check of `countersign doctor`.
struct Diagnosis: Sendable, Equatable {
    /// Result of a check.
    enum State: String, Sendable {
        case good = "ok"
        /// Neither good nor bad.
        case note
        /// Works, but needs attention.
        case warning
        case failed
    }

    /// The checked part: `local`, or an upstream.
    var part: String
    /// The name of the check.
    var check: String
    var state: State
    /// The finding.
    var detail: String
    /// The remedy; may be empty.
    var remedy = ""
    /// The exit code for a failure.
    var code = EX_UNAVAILABLE

    static func good(_ part: String, _ check: String, _ detail: String) -> Diagnosis {
        Diagnosis(part: part, check: check, state: .good, detail: detail)
    }

    static func note(_ part: String, _ check: String, _ detail: String) -> Diagnosis {
        Diagnosis(part: part, check: check, state: .note, detail: detail)
    }

    static func warning(_ part: String, _ check: String, _ detail: String, _ remedy: String) -> Diagnosis {
        Diagnosis(part: part, check: check, state: .warning, detail: detail, remedy: remedy)
    }

    static func failed(
        _ part: String, _ check: String, _ detail: String, _ remedy: String, code: Int32 = EX_UNAVAILABLE
    ) -> Diagnosis {
        Diagnosis(part: part, check: check, state: .failed, detail: detail, remedy: remedy, code: code)
    }
}

/// All findings.
struct DoctorReport {
    private(set) var diagnoses: [Diagnosis] = []

    mutating func add(_ more: [Diagnosis]) { diagnoses += more }

    /// The exit code. Failures of this machine take precedence over failures elsewhere.
    var exitCode: Int32 {
        let codes = Set(diagnoses.filter { $0.state == .failed }.map(\.code))
        return [EX_CONFIG, EX_NOPERM].first(where: codes.contains) ?? (codes.isEmpty ? EX_OK : EX_UNAVAILABLE)
    }

    /// The worst state of all findings.
    private var state: Diagnosis.State {
        let states = Set(diagnoses.map(\.state))
        return states.contains(.failed) ? .failed : states.contains(.warning) ? .warning : .good
    }

    /// The last line of the output.
    var summary: String {
        let (failed, warnings) = (count(.failed), count(.warning))
        let isPartial = diagnoses.contains { $0.check == "credential" && $0.state == .note }
        if failed == 0, warnings == 0 {
            return isPartial ? "nothing failed, but not all credentials could be checked" : "all is well"
        }
        return [(failed, "failed"), (warnings, warnings == 1 ? "warning" : "warnings")].filter { $0.0 > 0 }
            .map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }

    private func count(_ state: Diagnosis.State) -> Int { diagnoses.count { $0.state == state } }

    var json: JSONValue {
        [
            "status": .string(state.rawValue), "summary": .string(summary),
            "checks": .array(
                diagnoses.map { found in
                    [
                        "part": .string(found.part), "check": .string(found.check),
                        "status": .string(found.state.rawValue),
                        "detail": .string(found.detail), "remedy": found.remedy.isEmpty ? .null : .string(found.remedy),
                    ]
                }),
        ]
    }
}

extension Diagnosis {
    /// The finding as text, with the remedy on a second line. Text of servers is escaped.
    var lines: [String] {
        let word = (state == .failed ? "FAILED" : state.rawValue).padded(to: 8)
        var text = ""
        LogEscape.append(detail, to: &text)
        var lines = ["  \(word)\(check.padded(to: 12))\(text.replacing("\\\"", with: "\""))"]
        if !remedy.isEmpty { lines.append("".padded(to: 22) + "-> \(remedy)") }
        return lines
    }
}

extension String {
    /// Returns the text padded with spaces to `width`, at least one.
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(width == 0 ? 0 : 1, width - utf8.count))
    }
}

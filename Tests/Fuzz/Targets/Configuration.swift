// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading

/// A configuration.
func fuzzSettings(_ input: Span<UInt8>) throws(Violation) {
    let bytes = input.array
    let (settings, problems) = Settings.parse(bytes, file: "f", environment: ["PORT": "8080", "NAME": "bank"])
    let errors = problems.filter { $0.severity == .error }
    try require((settings == nil) == !errors.isEmpty, "\(errors.count) errors, and settings: \(settings != nil)")
    // One line more than there are: an omission at the end is reported after it.
    let lines = String(decoding: bytes, as: UTF8.self).unicodeScalars.count { isLineEnd($0) } + 2
    var last = Mark(line: 1, column: 1)
    for problem in problems {
        guard let mark = problem.mark else { throw Violation(description: "a problem without a place: \(problem)") }
        try require(
            (1...lines).contains(mark.line) && (1...bytes.count + 2).contains(mark.column), "no such place: \(problem)")
        try require(last <= mark, "not in the order of the file: \(problem)")
        last = mark
        try require(!problem.message.isEmpty, "a problem without a message")
        // Each problem is reported as one line.
        let isPlain = problem.description.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 }
        try require(isPlain, "a problem of two lines: \(problem)")
    }
    if let settings { try checkEffective(bytes, settings) }
}

/// The effective configuration means the same, and is its own.
private func checkEffective(_ bytes: [UInt8], _ settings: Settings) throws(Violation) {
    let environment = ["PORT": "8080", "NAME": "bank"]
    guard let lines = EffectiveReport(bytes, file: "f", environment: environment).lines else {
        throw Violation(description: "settings without an effective configuration")
    }
    let text = Array(lines.joined(separator: "\n").utf8)
    let again = Settings.parse(text, file: "f", environment: environment)
    try require(again.settings == settings, "other settings by the effective configuration: \(again.problems)")
    try require(
        EffectiveReport(text, file: "f", environment: environment).lines == lines,
        "the effective configuration has another one")
}

/// YAML 1.1 section 4.2, as libyaml counts lines.
private func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x0A, 0x0D, 0x85, 0x2028, 0x2029: true
    default: false
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading
import Testing

@Suite("What the commands print")
struct ReportTests {
    @Test("a problem is printed on one line, whatever characters the file's keys contain")
    func oneLine() {
        let told = problems("\"a\\nb\\e[2J\\u2028\": 1\nlisteners: []\nupstreams: {}\n")
        #expect(told.contains { $0.hasPrefix("f:1:1: a\\u000Ab\\u001B[2J\\u2028: unknown key") }, "\(told)")
    }

    @Test(
        "countersign check counts errors and warnings in its last line",
        arguments: [
            (0, 0, "a.yaml: no problems"), (1, 0, "a.yaml: 1 error"), (2, 1, "a.yaml: 2 errors, 1 warning"),
            (0, 3, "a.yaml: 3 warnings"),
        ])
    func summary(errors: Int, warnings: Int, text: String) {
        func problem(_ severity: Problem.Severity) -> Problem {
            Problem(
                file: "a.yaml", mark: Mark(line: 1, column: 2), keyPath: "x", message: "is wrong", severity: severity)
        }
        let problems =
            Array(repeating: problem(.error), count: errors) + Array(repeating: problem(.warning), count: warnings)
        let report = CheckReport(file: "a.yaml", problems: problems)
        #expect(report.summary == text)
        #expect(report.hasErrors == (errors > 0))
        #expect(
            report.lines == Array(repeating: "a.yaml:1:2: x: is wrong", count: errors)
                + Array(repeating: "a.yaml:1:2: x: warning: is wrong", count: warnings))
    }

    @Test(
        "countersign match prints the most specific pattern as it was written",
        arguments: [
            (["*.com", "https://A.com:80/"], "http://a.com", MatchReport.winner("https://A.com:80/")),
            (["b.com", "*.org"], "http://a.com", .none), ([], "http://a.com", .none),
            (
                ["a.*.com"], "a.com",
                .invalid("\"a.*.com\" is not a location pattern: a * in the host must be its whole first label")
            ),
            (
                ["*"], "ftp://a",
                .invalid("\"ftp://a\" is not a URI to match: the scheme is not http, https, ws or wss")
            ),
        ])
    func match(patterns: [String], uri: String, report: MatchReport) {
        #expect(MatchReport(uri: uri, patterns: patterns) == report)
    }

    @Test("countersign match exits with 0, 1 or 64, and prints none if no pattern covers the URI")
    func exitCodes() {
        #expect(MatchReport.winner("*").exitCode == 0)
        #expect(MatchReport.none.exitCode == 1)
        #expect(MatchReport.none.line == "none")
        #expect(MatchReport.invalid("x").exitCode == 64)
    }
}

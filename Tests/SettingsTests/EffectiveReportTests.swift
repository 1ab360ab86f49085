// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import Settings
import SettingsReading
import Testing

@Suite("The effective configuration")
struct EffectiveReportTests {
    @Test("the effective configuration has every default, in the order of the documentation")
    func defaults() throws {
        let report = report(
            """
            upstreams: { u: { url: "https://u.example/", replay: { disk: 1MiB } } }
            listeners: [{ address: 127.0.0.1:8080, upstream: u }]
            """)
        #expect(report.problems == [])
        #expect(
            try #require(report.lines).joined(separator: "\n") == """
                listeners:
                  - address: 127.0.0.1:8080
                    upstream: u
                    hosts: []
                    browsers: refuse
                    auth-requests: false
                upstreams:
                  u:
                    url: "https://u.example/"
                    tls:
                      minimum: 1.2
                      pin: []
                    http: auto
                    timeouts:
                      connect: 5s
                      response: 1m
                      idle: 5m
                      login: 1m
                    replay:
                      memory: 64KiB
                      disk: 1MiB
                    proxy: none
                    host: upstream
                    caller-credentials: replace
                    forwarded: none
                    plaintext: refuse
                credentials:
                  sources: [env, systemd]
                limits:
                  callers: 1024
                  exchanges: 4096
                  waiters: 1024
                  head: 64KiB
                  replay: 256MiB
                audit: journal
                workers: auto
                log:
                  level: info
                  format: auto
                access-log: none
                """)
    }

    @Test(
        "the effective configuration gives equal settings and an equal effective configuration",
        arguments: try samples())
    func roundTrip(sample: Sample) throws {
        let (settings, report) = (sample.settings(of: sample.text), sample.report(on: sample.text))
        let text = try #require(report.lines).joined(separator: "\n")
        #expect(settings != nil)
        #expect(sample.settings(of: text) == settings, "\(text)")
        #expect(sample.report(on: text).lines == report.lines)
        #expect(sample.report(on: text).problems.map(\.message) == report.problems.map(\.message))
        let json = try #require(report.jsonLines).joined(separator: "\n")
        #expect(sample.settings(of: json) == settings, "\(json)")
    }

    @Test("a file that cannot be used has problems and no effective configuration")
    func wrong() {
        let report = report(frame("workers: many"))
        #expect(report.lines == nil && report.jsonLines == nil)
        #expect(report.problems.map(\.keyPath) == ["workers"])
    }

    @Test("the effective configuration without defaults has only what is written")
    func written() {
        let report = EffectiveReport(Array("a: { b: [1, ~] }".utf8), file: "f", isEffective: false, environment: [:])
        #expect(report.lines == nil, "the keys are unknown")
        let text = frame("workers: 2")
        let known = EffectiveReport(Array(text.utf8), file: "f", isEffective: false, environment: [:])
        #expect(known.lines?.contains("workers: 2") == true)
        #expect(known.lines?.contains { $0.contains("audit") } == false)
    }

    @Test("the effective configuration has variables replaced, except in templates")
    func variables() throws {
        let text = challenge(
            "name: c, upstream: u, credential: x, inject: { A: \"${WORD}\" }",
            upstream: "timeouts: { login: \"${TIME}\" }")
        let sample = Sample(name: "variables", text: text, environment: ["TIME": "7s", "WORD": "s3cret"])
        let lines = try #require(sample.report(on: text).lines)
        #expect(lines.contains { $0.hasSuffix("login: \"7s\"") })
        #expect(lines.contains { $0.hasSuffix("A: \"${WORD}\"") })
        #expect(!lines.joined().contains("s3cret"))
    }

    @Test("a dollar sign and a brace that a value contains are written so that they are not a variable")
    func dollars() throws {
        let text = frame("access-log: { format: json, to: \"/var/$${X}/$$y\" }")
        let sample = Sample(name: "dollars", text: text, environment: [:])
        let again = try #require(sample.report(on: text).lines).joined(separator: "\n")
        #expect(sample.settings(of: text)?.accessLog.path == "/var/${X}/$$y")
        #expect(sample.settings(of: again)?.accessLog.path == "/var/${X}/$$y")
    }

    private func report(_ text: String) -> EffectiveReport {
        EffectiveReport(Array(text.utf8), file: "f", environment: [:])
    }
}

/// A configuration, with its environment.
struct Sample: CustomTestStringConvertible {
    let name: String
    let text: String
    var environment = ["CREDENTIALS_DIRECTORY": "/run/credentials/x"]
    var handlers: Set<String> = ["h", "corporate-portal", "portal-page"]

    var testDescription: String { name }

    func settings(of text: String) -> Settings? {
        Settings.parse(Array(text.utf8), file: "f", environment: environment, handlers: handlers).settings
    }

    func report(on text: String) -> EffectiveReport {
        EffectiveReport(Array(text.utf8), file: "f", environment: environment, handlers: handlers)
    }
}

private func samples() throws -> [Sample] {
    let shipped = try ["countersign", "minimal"].map {
        Sample(name: $0, text: try Page("config/\($0).yaml").lines.joined(separator: "\n"))
    }
    let documented = try Page.all().flatMap { page in
        page.configurations.filter { $0.text.contains("listeners:") && $0.text.contains("upstreams:") }.map {
            Sample(name: "\(page.path):\($0.line)", text: $0.text)
        }
    }
    let odd = [
        challenge("name: c, upstream: u, handler: h"),
        challenge("name: c, upstream: u, scheme: basic, credential: { by-user: { ann: c, \"*\": d } }"),
        challenge(
            "name: c, upstream: u, security-check: P, credential: x, "
                + "answer: { a: +1, b: TRUE, c: 1e3, d: \"1\", e: [~, \"~\", .5], f: { g: \"# - : x\", \"h: i\": \"\\u2028\" } }"
        ),
        challenge("name: c, upstream: u, scheme: bearer, credential: x, token: { grant: mobilefirst }"),
        challenge(
            "name: c, upstream: u, scheme: bearer, credential: x, token: { grant: static, field: X-T, prefix: \"\" }"),
        challenge(
            "name: c, upstream: u, gateway: webseal, credential: x, login: [{ url: form }, { when: , page: /p }]"),
        frame("access-log: common\nworkers: 3\nadmin: { address: [\"unix:/a\", \"127.0.0.1:9\"] }"),
        frame(upstream: "tls: { minimum: 1.3 }"),
        frame("sessions: { store: \"redis+unix:///run/r.sock?db=3\", key: k }"),
        frame("sessions: { store: \"rediss://r.example\", key: k, spread: 90s }"),
    ].enumerated().map { Sample(name: "odd \($0)", text: $1) }
    return [Sample(name: "everything", text: everything)] + shipped + documented + odd
}

@Suite("Output of the commands")
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

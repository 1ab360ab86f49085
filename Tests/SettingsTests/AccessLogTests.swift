// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Settings

@Suite("access-log")
struct AccessLogTests {
    @Test(
        "access-log is a format or a mapping",
        arguments: [
            ("none", AccessLogSettings()), ("json", AccessLogSettings(format: .json)),
            ("{ format: common, to: stdout }", AccessLogSettings(format: .common)),
            (
                "{ format: json, to: /var/log/a.log, query: true }",
                AccessLogSettings(format: .json, path: "/var/log/a.log", query: true)
            ),
        ])
    func right(text: String, settings: AccessLogSettings) {
        #expect(parsed(frame("access-log: \(text)"))?.accessLog == settings)
    }

    @Test(
        "each problem of access-log is reported with its position and a remedy",
        arguments: [
            ("combined", "access-log: \"combined\" is not one of common, json, none"),
            ("{ to: /a }", "access-log.format: is missing"),
            (
                "{ format: json, to: a.log }",
                "access-log.to: \"a.log\" is neither stdout nor the absolute path of a file"
            ),
        ])
    func wrong(text: String, problem: String) {
        #expect(problems(frame("access-log: \(text)")).contains { $0.hasSuffix(problem) })
    }
}

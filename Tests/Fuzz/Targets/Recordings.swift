// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import SettingsReading

@testable import ChallengeHandling
@testable import Learning
@testable import Settings

/// A browser's recording. What is learned from it goes to one origin, has no secret in it, and is a valid configuration.
func fuzzRecordings(_ input: Span<UInt8>) throws(Violation) {
    guard let recording = try? HARRecording(parsing: input.array) else { return }
    try require(
        !recording.entries.isEmpty && recording.entries.count <= HARRecording.entryLimit,
        "\(recording.entries.count) entries")
    for entry in recording.entries {
        try require(entry.responseBody.count <= ExaminedResponse.bodyLimit, "a body of \(entry.responseBody.count)")
    }
    for secrets in [["username": "ann", "password": password], ["password": password], [:]] {
        let known = secrets.mapValues { Secret($0) }
        guard let login = try? RecordedLogin(recording, at: origin, known: known) else { continue }
        try check(login, known: !secrets.isEmpty)
    }
}

private let password = "Right-horse-7"
private let origin = Origin(scheme: .https, host: "www.example.com")

private func check(_ login: RecordedLogin, known: Bool) throws(Violation) {
    try require(login.url.origin == origin && login.page?.origin ?? origin == origin, "another origin")
    for parameter in login.parameters {
        try require((try? TextTemplate(parameter.template)) != nil, "\(parameter) is no template")
        try require(!known || parameter.template != password, "the password is in \(parameter.name)")
    }
    if let token = login.token { try require(JSONPointer(token.pointer) != nil, "\(token.pointer) is no pointer") }
    let base = WebURL(origin: origin, path: "/")
    let asked = WebURL(origin: origin, path: "/api/me")
    let refusal = ExaminedResponse(status: 401, fields: [.contentType: "application/json"], url: asked)
    let findings = SiteFindings(
        asked: SiteVisit(address: asked, responses: [refusal]), root: SiteVisit(address: base, responses: []))
    guard let plan = try? LearnedPlan(findings, recorded: login) else { return }
    let block = ConfigurationBlock(name: "app", url: base, challenge: plan.lines, fields: plan.fields)
    let text = block.lines().joined(separator: "\n")
    try require(!known || !text.contains(password), "the password is in the configuration")
    let (settings, problems) = Settings.parse(Array(text.utf8), file: "f", environment: [:])
    try require(settings != nil, "\(text) has problems: \(problems)")
}

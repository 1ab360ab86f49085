// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@testable import Learning

@Suite("The difference between an accepted and a refused password")
struct RefusalDifferenceTests {
    private func line(_ accepted: SideResponse, _ rejected: SideResponse) throws -> String? {
        let url = try #require(WebURL("https://www.example.com/login"))
        func examined(_ answer: SideResponse) -> ExaminedResponse {
            ExaminedResponse(status: answer.status, fields: answer.fields, body: answer.body, method: .post, url: url)
        }
        return RefusalDifference(accepted: examined(accepted), rejected: examined(rejected)).line?.text
    }

    @Test("another status, another redirect, or a text that says so is the rule of a refusal")
    func rules() throws {
        #expect(
            try line(.redirect(to: "/"), .page("no", status: 400))
                == "failed: { status: 400, because: wrong-password }")
        #expect(
            try line(.redirect(to: "/home"), .redirect(to: "/sorry"))
                == "failed: { redirect-to: /sorry, because: wrong-password }")
        #expect(
            try line(.redirect(to: "/login"), .redirect(to: "/login?error=1"))
                == "failed: { redirect-to: \"/login?error=1\", because: wrong-password }")
        #expect(
            try line(.page("<b>Ok.</b>"), .page("<b>Invalid login</b>"))
                == "failed: { body-contains: \"Invalid login\", because: wrong-password }")
    }

    @Test("answers that are alike yield no rule of a refusal")
    func alike() throws {
        #expect(try line(.page("<b>Hello</b>"), .page("<b>Hello</b>")) == nil)
        #expect(try line(.page("<b>Hello</b>"), .page("<b>One</b><b>Two</b>")) == nil)
    }
}

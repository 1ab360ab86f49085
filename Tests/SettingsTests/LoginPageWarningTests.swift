// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Settings

@Suite("A login page that may say where its form goes")
struct LoginPageWarningTests {
    private func problems(_ login: String, _ more: String = "") -> [String] {
        SettingsTests.problems(
            """
            listeners: [{ address: "127.0.0.1:8080", upstream: u }]
            upstreams: { u: { url: "https://u.example/" } }
            challenges:
              - name: page
                upstream: u
                gateway: none
                credential: ann
                detect: { form-action: /login }
                login: \(login)
                \(more)
            """)
    }

    @Test("`url: form` is warned about unless `page` or `prove-at` is set")
    func warned() throws {
        let warned = problems("{ url: form }")
        #expect(warned.count == 1 && warned[0].contains("challenges[0].login: warning: "), "\(warned)")
        #expect(problems("[{ url: form }, { url: form }]").count == 1)
        #expect(problems("{ page: /login, url: form }").isEmpty)
        #expect(problems("{ url: /login }").isEmpty)
        #expect(problems("{ url: form }", "prove-at: /whoami").isEmpty)
    }
}

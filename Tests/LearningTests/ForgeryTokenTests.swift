// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Learning

@Suite("Tokens against forged requests, by a session's cookies")
struct ForgeryTokenTests {
    @Test("a session cookie that scripts copy into a field becomes a line of inject, and other cookies do not")
    func lines() {
        #expect(ForgeryToken.line(for: ["sessionid"]) == nil)
        #expect(
            ForgeryToken.line(for: ["sessionid", "_xsrf"])?.text
                == "inject: { X-XSRFToken: { value: \"{cookie:_xsrf}\", on: [POST, PUT, PATCH, DELETE] } }")
    }
}

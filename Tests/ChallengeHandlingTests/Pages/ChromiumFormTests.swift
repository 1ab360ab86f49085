// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@Suite("Forms as Chromium submits them")
struct ChromiumFormTests {
    private static let forms = JudgeTable("chromium-forms").rows.map(SubmittedForm.init)

    @Test("method, address and body are Chromium's, byte for byte, or nothing is sent and the reason is told")
    func forms() {
        var refusals = 0
        for form in Self.forms {
            switch form.outcome {
            case .same: #expect(!form.isHeld, "\(form)")
            case .refused: if !form.isHeld { refusals += 1 }
            case .different(let difference): Issue.record("\(form)\n\(difference)")
            }
        }
        // Named colors, and inputs among suggestions: browsers differ there.
        #expect(Self.forms.count >= 300 && refusals * 20 < Self.forms.count, "\(refusals) refused")
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Redacted texts")
struct RedactionTests {
    @Test(
        "a secret is told in none of the ways in which another program may write it",
        arguments: [
            "Zq7/x+ w\"k", #"Zq7/x+ w\"k"#, "Zq7%2Fx%2B%20w%22k", "Zq7%2fx%2b%20w%22k", "Zq7%2Fx%2B+w%22k",
            "Zq7%2fx%2b+w%22k",
            "5a71372f782b2077226b", "5A71372F782B2077226B",
        ])
    func forms(_ written: String) {
        #expect(Redaction.text("a\(written)b", without: ["Zq7/x+ w\"k"]) == "a<redacted>b")
    }

    @Test(
        "within longer base64 none of the digits that are the secret's own is left", arguments: ["", "u", "us", "ann:"])
    func base64(before: String) {
        for alphabet in [Base64.Alphabet.standard, .url] {
            let text = Base64.encode(Array("\(before)Right-horse-7?>~ and more".utf8), alphabet)
            let told = Redaction.text(text, without: ["Right-horse-7?>~"])
            // At most a digit at each end holds bits of a neighbour, too.
            #expect(told.contains("<redacted>") && told.utf8.count <= text.utf8.count - 20 + "<redacted>".utf8.count)
        }
    }

    @Test("of a short secret only what is plainly it is taken out")
    func short() {
        #expect(
            Redaction.text("pin 1234, 31323334 and MTIzNA", without: ["1234"]) == "pin <redacted>, 31323334 and MTIzNA")
    }
}

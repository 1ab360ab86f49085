// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Spaces of realms")
struct RealmSpaceTests {
    @Test("a worker's view of realms knows what was learned before and after its creation")
    func view() {
        let origin = Origin(scheme: .https, host: "api.example.com")
        let spaces = RealmSpaces()
        let early = spaces.learn("a", at: WebURL(origin: origin, path: "/one/"))
        var view = RealmSpaceView(spaces)
        #expect(early && view.membership(of: "a", at: "/one/x?y=/") == .mine)
        #expect(view.membership(of: "a", at: "/two/x") == .unknown)
        let late = spaces.learn("b", at: WebURL(origin: origin, path: "/one/two/"))
        #expect(late && view.membership(of: "a", at: "/one/two/x") == .another)
        #expect(view.membership(of: "a", at: "/one/x") == .mine)
        let again = spaces.learn("a", at: WebURL(origin: origin, path: "/one/two/"))
        #expect(again && view.membership(of: "a", at: "/one/two/x") == .mine)
    }
}

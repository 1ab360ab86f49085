// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import Credentials

@Suite("State and runtime directories")
struct StateDirectoryTests {
    @Test("the state directory is the first one that applies")
    func state() throws {
        let all = ["STATE_DIRECTORY": "/s/a:/s/b", "XDG_STATE_HOME": "/x/", "HOME": "/home/ann"]
        #expect(try StateDirectory.locate(environment: all, uid: 0) == "/s/a")
        #expect(try StateDirectory.locate(environment: all, uid: 1000) == "/s/a")
        var rest = all
        rest["STATE_DIRECTORY"] = nil
        #expect(try StateDirectory.locate(environment: rest, uid: 0) == "/var/lib/countersign")
        #expect(try StateDirectory.locate(environment: rest, uid: 1000) == "/x/countersign")
        rest["XDG_STATE_HOME"] = "relative"
        #expect(try StateDirectory.locate(environment: rest, uid: 1000) == "/home/ann/.local/state/countersign")
        #expect(throws: StateError.self) { try StateDirectory.locate(environment: [:], uid: 1000) }
        #expect(throws: StateError.self) {
            try StateDirectory.locate(environment: ["STATE_DIRECTORY": "", "HOME": ""], uid: 1000)
        }
    }

    @Test("the runtime directory is the first one that applies")
    func runtime() {
        let all = ["RUNTIME_DIRECTORY": "/run/a:/run/b", "XDG_RUNTIME_DIR": "/run/user/1000"]
        func locate(_ environment: [String: String], uid: UInt32, usable: Bool) -> String {
            RuntimeDirectory.locate(environment: environment, uid: uid) { _ in usable }
        }
        #expect(locate(all, uid: 1000, usable: true) == "/run/a")
        let user = ["XDG_RUNTIME_DIR": "/run/user/1000"]
        #expect(locate(user, uid: 0, usable: false) == "/run/countersign")
        #expect(locate(user, uid: 1000, usable: true) == "/run/countersign")
        #expect(locate(user, uid: 1000, usable: false) == "/run/user/1000/countersign")
        #expect(locate([:], uid: 1000, usable: false) == "/run/countersign")
    }
}

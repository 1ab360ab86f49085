// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("waiting for what happens")
struct RecorderTests {
    @Test("a wait ends with the event, or at once when it has happened already")
    func happens() async throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        async let waited = server.recorder.waitUntil(answers: 2, to: "PinCodeAttempts")
        _ = try phone.pin("0000")
        _ = try phone.pin("1234")
        #expect(await waited)
        #expect(await server.recorder.waitUntil(answers: 1))
    }

    @Test("a wait for what does not happen ends with its time", arguments: [.zero, .milliseconds(20)] as [Duration])
    func doesNotHappen(timeout: Duration) async {
        let recorder = Recorder()
        #expect(await recorder.waitUntil(answers: 1, timeout: timeout) == false)
    }
}

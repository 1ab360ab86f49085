// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import Credentials

@Suite("A question for password agents")
struct AskFileTests {
    @Test("is a file in the form of the specification, one line for each value")
    func text() {
        let file = AskFile(
            message: "The pin\nSocket=/evil", id: "countersign:a:pin", socket: "/run/x/sck.1", process: 7, notAfter: 42)
        let lines = file.text.split(separator: "\n").map(String.init)
        #expect(lines.first == "[Ask]")
        #expect(lines.contains("PID=7"))
        #expect(lines.contains("NotAfter=42"))
        #expect(lines.contains("AcceptCached=0"))
        #expect(lines.contains("Message=The pinSocket=/evil"))
        #expect(lines.filter { $0.hasPrefix("Socket=") } == ["Socket=/run/x/sck.1"])
    }

    @Test(
        "has an answer after a plus, up to the first zero byte",
        arguments: ["+1234", "+1234\u{0}", "+1234\u{0}another\u{0}"])
    func answer(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == .answer(Secret("1234")))
    }

    @Test("is withdrawn by a minus, and by an answer without a sign in it", arguments: ["-", "-why", "+", "+\u{0}"])
    func withdrawn(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == .withdrawn)
    }

    @Test("goes on where a datagram is neither", arguments: ["", "1234", " +1234"])
    func nonsense(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import Credentials

@Suite("Question file for password agents")
struct AskFileTests {
    @Test("a question file has the specified format, with one line per value")
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
        "the answer of a password agent follows a plus, up to the first zero byte",
        arguments: ["+1234", "+1234\u{0}", "+1234\u{0}another\u{0}"])
    func answer(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == .answer(Secret("1234")))
    }

    @Test(
        "a minus or an empty answer of a password agent withdraws the question",
        arguments: ["-", "-why", "+", "+\u{0}"])
    func withdrawn(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == .withdrawn)
    }

    @Test("a datagram of a password agent without plus or minus is ignored", arguments: ["", "1234", " +1234"])
    func nonsense(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == nil)
    }
}

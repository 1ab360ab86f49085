// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Systemd
import Testing

@Suite("States that a service reports to its manager")
struct NotifyStateTests {
    @Test("each notify state is the assignment that sd_notify(3) defines")
    func assignments() throws {
        let name = try #require(DescriptorName(rawValue: "sessions"))
        #expect(try NotifyState.render([.ready]) == "READY=1")
        #expect(
            try NotifyState.render([.reloading(monotonicMicroseconds: 17)]) == "RELOADING=1\nMONOTONIC_USEC=17")
        #expect(try NotifyState.render([.stopping]) == "STOPPING=1")
        #expect(try NotifyState.render([.watchdog]) == "WATCHDOG=1")
        #expect(try NotifyState.render([.mainProcess(42)]) == "MAINPID=42")
        #expect(try NotifyState.render([.storeDescriptors(name: name)]) == "FDSTORE=1\nFDNAME=sessions")
        #expect(try NotifyState.render([.forgetDescriptors(name: name)]) == "FDSTOREREMOVE=1\nFDNAME=sessions")
    }

    @Test("several notify states are rendered to one datagram, in order")
    func several() throws {
        #expect(
            try NotifyState.render([.ready, .status("3 listeners, 2 upstreams")])
                == "READY=1\nSTATUS=3 listeners, 2 upstreams")
    }

    @Test("a status text cannot forge another assignment", arguments: ["a\nREADY=1", "a\r", "a\0b"])
    func lineBreaks(sentence: String) {
        #expect(throws: NotifyFailure.lineBreak(in: "STATUS")) {
            try NotifyState.render([.status(sentence)])
        }
    }

    @Test("a descriptor's name has 1 to 255 characters, without colons and control characters")
    func descriptorNames() {
        #expect(DescriptorName(rawValue: "bank session")?.rawValue == "bank session")
        #expect(DescriptorName(rawValue: String(repeating: "a", count: 255)) != nil)
        for bad in ["", "a:b", "a\nb", "ä", String(repeating: "a", count: 256)] {
            #expect(DescriptorName(rawValue: bad) == nil)
        }
    }
}

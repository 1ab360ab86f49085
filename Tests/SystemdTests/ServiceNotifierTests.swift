// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import Systemd

// libsystemd reads the environment of the process, so each of these tests runs in its own process.
@Suite("Sending to the service manager")
struct ServiceNotifierTests {
    @Test("the states of a supervised service reach NOTIFY_SOCKET in one datagram")
    func sent() async {
        await #expect(processExitsWith: .success) {
            let manager = try UnixSocket(SOCK_DGRAM)
            setVariable("NOTIFY_SOCKET", manager.path)
            #expect(ServiceNotifier().send(.ready, .status("ready")) == .sent)
            #expect(manager.receivedText() == "READY=1\nSTATUS=ready")
            // The environment is kept for the next message.
            #expect(ServiceNotifier().send(.stopping) == .sent)
            #expect(manager.receivedText() == "STOPPING=1")
        }
    }

    @Test("without NOTIFY_SOCKET nothing is sent, and this is not a failure")
    func notSupervised() async {
        await #expect(processExitsWith: .success) {
            setVariable("NOTIFY_SOCKET", nil)
            #expect(ServiceNotifier().send(.ready) == .notSupervised)
        }
    }

    @Test("a notification to a missing manager fails with its errno")
    func gone() async {
        await #expect(processExitsWith: .success) {
            setVariable("NOTIFY_SOCKET", "/nonexistent/notify")
            #expect(ServiceNotifier().send(.ready) == .failed(.system(errno: ENOENT)))
        }
    }

    @Test("a datagram with one invalid status is not sent at all")
    func refused() async {
        await #expect(processExitsWith: .success) {
            let manager = try UnixSocket(SOCK_DGRAM)
            setVariable("NOTIFY_SOCKET", manager.path)
            #expect(ServiceNotifier().send(.ready, .status("a\nb")) == .failed(.lineBreak(in: "STATUS")))
            #expect(manager.received() == nil)
        }
    }

    @Test("a stored descriptor replaces the former one and travels in its own datagram")
    func stored() async {
        await #expect(processExitsWith: .success) {
            let manager = try UnixSocket(SOCK_DGRAM)
            setVariable("NOTIFY_SOCKET", manager.path)
            let name = try #require(DescriptorName(rawValue: "sessions"))
            let descriptor = try SealedMemory.make([1, 2, 3], named: "test")
            #expect(ServiceNotifier().store(descriptor, as: name) == .sent)
            #expect(manager.receivedText() == "FDSTOREREMOVE=1\nFDNAME=sessions")
            #expect(manager.receivedText() == "FDSTORE=1\nFDNAME=sessions")
        }
    }
}

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

@Suite("The watchdog")
struct WatchdogTests {
    @Test("the watchdog is notified at half its interval")
    func beat() throws {
        let watchdog = try Watchdog.expected(in: ["WATCHDOG_USEC": "30000000"], of: 7)
        #expect(watchdog?.interval == .seconds(30))
        #expect(watchdog?.beat == .seconds(15))
    }

    @Test("without WATCHDOG_USEC there is no watchdog")
    func absent() throws {
        #expect(try Watchdog.expected(in: ["WATCHDOG_PID": "7"], of: 7) == nil)
    }

    @Test("a watchdog for another process is ignored")
    func otherProcess() throws {
        let environment = ["WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"]
        #expect(try Watchdog.expected(in: environment, of: 7) == nil)
        #expect(try Watchdog.expected(in: environment, of: 8)?.interval == .milliseconds(1))
    }

    @Test("a watchdog interval beyond Int64 counts as none")
    func beyond() throws {
        #expect(try Watchdog.expected(in: ["WATCHDOG_USEC": String(UInt64.max)], of: 7) == nil)
    }

    @Test("a WATCHDOG_USEC that is not a positive number is an error", arguments: ["", "0", "-1", "30s", "1.5"])
    func nonsense(value: String) {
        #expect(throws: WatchdogError(variable: "WATCHDOG_USEC", value: value)) {
            try Watchdog.expected(in: ["WATCHDOG_USEC": value], of: 7)
        }
        #expect(throws: WatchdogError(variable: "WATCHDOG_PID", value: value)) {
            try Watchdog.expected(in: ["WATCHDOG_USEC": "5", "WATCHDOG_PID": value], of: 7)
        }
    }
}

@Suite("A sealed file in memory")
struct SealedMemoryTests {
    @Test("sealed memory returns its content every time, and is closed on exec")
    func roundTrip() throws {
        for bytes in [[], [1, 2, 3], [UInt8](repeating: 7, count: 300_000)] {
            let descriptor = try SealedMemory.make(bytes, named: "test")
            defer { close(descriptor) }
            #expect(try SealedMemory.read(descriptor) == bytes)
            #expect(try SealedMemory.read(descriptor) == bytes)
            #expect(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
        }
    }

    @Test("sealed memory cannot be written or resized")
    func sealed() throws {
        let descriptor = try SealedMemory.make([1, 2, 3], named: "test")
        defer { close(descriptor) }
        #expect(unsafe pwrite(descriptor, [9], 1, 0) == -1)
        #expect(ftruncate(descriptor, 1) == -1)
        #expect(ftruncate(descriptor, 9) == -1)
        #expect(try SealedMemory.read(descriptor) == [1, 2, 3])
    }

    @Test("an ordinary descriptor is not accepted as sealed memory")
    func others() {
        #expect(throws: SealedMemoryError.notSealed) { try SealedMemory.read(STDERR_FILENO) }
        let file = unsafe open("/proc/self/exe", O_RDONLY)
        defer { close(file) }
        #expect(throws: SealedMemoryError.notSealed) { try SealedMemory.read(file) }
        #expect(throws: SealedMemoryError.notSealed) { try SealedMemory.read(-1) }
    }
}

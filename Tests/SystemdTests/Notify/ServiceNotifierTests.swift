// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Systemd
import Testing

// libsystemd reads the environment of the process, so each of these has a process of its own.
@Suite("Sending to the service manager")
struct ServiceNotifierTests {
    @Test("the states of a supervised service reach NOTIFY_SOCKET in one datagram")
    func sent() async {
        await #expect(processExitsWith: .success) {
            let manager = try UnixSocket(SOCK_DGRAM)
            setVariable("NOTIFY_SOCKET", manager.path)
            #expect(ServiceNotifier().send(.ready, .status("ready")) == .sent)
            #expect(manager.receivedText() == "READY=1\nSTATUS=ready")
            // The environment is still there for the next one.
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

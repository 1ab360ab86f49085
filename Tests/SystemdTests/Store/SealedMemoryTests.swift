// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Systemd
import Testing

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

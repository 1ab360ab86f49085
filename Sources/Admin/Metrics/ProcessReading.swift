// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// What the kernel says of this process.
package struct ProcessReading: Sendable {
    /// Bytes in memory.
    package var residentBytes: Int
    /// Bytes of address space.
    package var virtualBytes: Int
    /// Time of the processor, in nanoseconds, in the program and in the kernel for it.
    package var processorNanoseconds: UInt64
    /// Descriptors that are open; `nil` where the kernel does not tell.
    package var openDescriptors: Int?
    /// How many may be open.
    package var mostDescriptors: UInt64
    /// When the process began to serve, in milliseconds since 1970.
    package var startedAt: Int64

    /// What it says now. `startedAt`: when the process began, in milliseconds since 1970.
    package static func now(startedAt: Int64) -> ProcessReading {
        let pages = read("/proc/self/statm").split(separator: " ").map { Int($0) ?? 0 }
        let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
        var usage = rusage()
        unsafe getrusage(RUSAGE_SELF.rawValue, &usage)
        var limit = rlimit()
        unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return ProcessReading(
            residentBytes: pages.count > 1 ? pages[1] &* pageSize : 0,
            virtualBytes: (pages.first ?? 0) &* pageSize,
            processorNanoseconds: nanoseconds(usage.ru_utime) &+ nanoseconds(usage.ru_stime),
            openDescriptors: openDescriptorCount(), mostDescriptors: UInt64(limit.rlim_cur), startedAt: startedAt)
    }

    private static func nanoseconds(_ time: timeval) -> UInt64 {
        UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_usec) &* 1000
    }

    /// The kernel says it as the size of the folder (since 6.2); with an older one they are counted, where those are not so many
    /// that a loop would stand still meanwhile.
    private static func openDescriptorCount() -> Int? {
        var status = stat()
        guard unsafe stat("/proc/self/fd", &status) == 0 else { return nil }
        if status.st_size > 0 { return Int(status.st_size) }
        guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
        defer { unsafe closedir(folder) }
        var count = 0
        while unsafe readdir(folder) != nil, count < 65_536 { count += 1 }
        // Less `.`, `..` and the folder's own.
        return max(0, count - 3)
    }

    private static func read(_ path: String) -> String {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe Glibc.read(descriptor, $0.baseAddress, $0.count) }
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
}

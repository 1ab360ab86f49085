// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import Synchronization

/// Limit of descriptors that this process may have open (RLIMIT_NOFILE, getrlimit(2)).
package enum OpenFileLimit {
    /// Limit that applies, and the one up to which this process may raise it; nil if the kernel does not report them.
    package static var current: (soft: UInt64, hard: UInt64)? {
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return nil }
        return (UInt64(limit.rlim_cur), UInt64(limit.rlim_max))
    }

    /// Raises the limit as far as an administrator allows. The usual 1024 is meant for programs that use select(2).
    package static func raise() {
        guard let (soft, hard) = current, soft < hard else { return }
        // The unit forbids it, and sets both limits itself.
        guard set(soft: hard, hard: hard) else { return }
        original.withLock { $0 = $0 ?? soft }
    }

    /// Runs `body`, which starts a program, with the limit from before `raise`: the program may well use select(2). Until `body` is
    /// over, no descriptor above that limit can be opened.
    package static func withOriginal<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let soft = original.withLock({ $0 }), let raised = current, set(soft: soft, hard: raised.hard) else {
            return try body()
        }
        defer { _ = set(soft: raised.soft, hard: raised.hard) }
        return try body()
    }

    /// The soft limit before it was raised.
    private static let original = Mutex<UInt64?>(nil)

    private static func set(soft: UInt64, hard: UInt64) -> Bool {
        var limit = rlimit(rlim_cur: rlim_t(soft), rlim_max: rlim_t(hard))
        return unsafe setrlimit(resource, &limit) == 0
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
}

/// Resources that this process uses, as the kernel accounts for them.
package enum ProcessUsage {
    /// Bytes of address space, and of memory.
    package static func memory() -> (virtual: Int, resident: Int) {
        let bytes = (try? FileSystem.contents(of: "/proc/self/statm", limit: 256)) ?? []
        let pages = String(decoding: bytes, as: UTF8.self).split(separator: " ").map { Int($0) ?? 0 }
        let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
        return ((pages.first ?? 0) &* pageSize, pages.count > 1 ? pages[1] &* pageSize : 0)
    }

    /// CPU time in nanoseconds, of the program and of the kernel on its behalf.
    package static func processorNanoseconds() -> UInt64 {
        var usage = rusage()
        unsafe getrusage(RUSAGE_SELF.rawValue, &usage)
        return nanoseconds(usage.ru_utime) &+ nanoseconds(usage.ru_stime)
    }

    /// Number of open descriptors; nil if the kernel does not report it.
    ///
    /// Kernels since 6.2 report the number as the size of the folder; with an older one the entries are counted.
    package static func openDescriptors() -> Int? {
        let folder = "/proc/self/fd"
        guard let status = try? FileSystem.status(of: folder) else { return nil }
        if status.st_size > 0 { return Int(status.st_size) }
        // Less the folder's own.
        return DirectoryListing.names(in: folder, atMost: 65_536).map { max(0, $0.count - 1) }
    }

    private static func nanoseconds(_ time: timeval) -> UInt64 {
        UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_usec) &* 1000
    }
}

/// The memory of this process.
package enum ProcessMemory {
    /// Disables core dumps, and prevents other processes of the same user from tracing this one or reading its memory
    /// (PR_SET_DUMPABLE, prctl(2)). If that fails, the limits decide.
    package static func forbidDumps() { _ = clinux_forbid_dumps() }

    /// Makes the allocator return unused pages to the kernel (malloc_trim(3)).
    package static func returnFreePages() { clinux_return_memory() }

    /// Unmaps the pages of all executable file mappings; the page cache supplies them again at their next use.
    /// Executable mappings are never written (no text relocations), so nothing is lost. Others may be written, and are
    /// left alone.
    package static func dropCodePages() {
        let maps = (try? FileSystem.contents(of: "/proc/self/maps", limit: 4 << 20)) ?? []
        for line in String(decoding: maps, as: UTF8.self).split(separator: "\n") {
            guard let range = codeRange(line), let start = unsafe UnsafeMutableRawPointer(bitPattern: range.lowerBound)
            else { continue }
            _ = unsafe madvise(start, range.count, MADV_DONTNEED)
        }
    }

    /// Returns the address range of a line of /proc/self/maps (`start-end rwxp offset device inode path`, proc(5)); nil
    /// unless the line maps executable code of a file.
    static func codeRange(_ line: Substring) -> Range<UInt>? {
        let words = line.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count >= 5, words[1] == "r-xp", words[4] != "0" else { return nil }
        let ends = words[0].split(separator: "-")
        guard ends.count == 2, let start = UInt(ends[0], radix: 16), let end = UInt(ends[1], radix: 16), start < end
        else { return nil }
        return start..<end
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// Memory for secrets: dedicated pages outside core dumps (MADV_DONTDUMP) and, if possible, swap.
///
/// Pages stay out of swap as far as RLIMIT_MEMLOCK allows (mlock(2)). Released memory is overwritten at once and
/// reused; pages are kept.
enum SecretMemory {
    private static let pages = Mutex(SecretPages())

    /// Allocates at least `count` bytes, all zero.
    static func allocate(_ count: Int) -> UnsafeMutablePointer<UInt8> {
        let address = pages.withLock { $0.take(count) }
        if let address, let start = unsafe UnsafeMutablePointer<UInt8>(bitPattern: address) { return unsafe start }
        // No page could be mapped: use the heap, or end the process.
        let start = UnsafeMutablePointer<UInt8>.allocate(capacity: max(count, 1))
        unsafe start.initialize(repeating: 0, count: max(count, 1))
        return unsafe start
    }

    /// Overwrites and releases the memory that `allocate` returned for `count` bytes.
    static func release(_ start: UnsafeMutablePointer<UInt8>, _ count: Int) {
        unsafe explicit_bzero(start, count)
        let isOurs = pages.withLock { $0.giveBack(UInt(bitPattern: start), count) }
        if !isOurs { unsafe start.deallocate() }
    }
}

/// Pages by address: slots of a few sizes in blocks, and separate mappings for larger sizes.
private struct SecretPages {
    private static let block = 32 << 10
    private static let smallest = 32
    private static let largest = 4096

    /// Free slots, by the number of times that `smallest` is doubled.
    private var free: [[UInt]] = Array(repeating: [], count: 8)
    private var blocks: [UInt] = []
    private var mappings: Set<UInt> = []

    mutating func take(_ count: Int) -> UInt? {
        guard count <= Self.largest else {
            guard let start = Self.map(Self.wholePages(count)) else { return nil }
            mappings.insert(start)
            return start
        }
        let (index, size) = Self.sizeClass(count)
        if free[index].isEmpty {
            guard let start = Self.map(Self.block) else { return nil }
            blocks.append(start)
            // Reversed, so that the first slots are used first.
            free[index] = stride(from: 0, to: Self.block, by: size).map { start + UInt($0) }.reversed()
        }
        return free[index].popLast()
    }

    /// Releases a slot, and returns true if the memory was part of these pages.
    mutating func giveBack(_ start: UInt, _ count: Int) -> Bool {
        guard count <= Self.largest else {
            guard mappings.remove(start) != nil else { return false }
            unsafe munmap(UnsafeMutableRawPointer(bitPattern: start), Self.wholePages(count))
            return true
        }
        guard blocks.contains(where: { start >= $0 && start - $0 < UInt(Self.block) }) else { return false }
        free[Self.sizeClass(count).index].append(start)
        return true
    }

    private static func sizeClass(_ count: Int) -> (index: Int, size: Int) {
        var index = 0
        var size = smallest
        while size < count {
            size *= 2
            index += 1
        }
        return (index, size)
    }

    private static func wholePages(_ count: Int) -> Int { (count + 4095) & ~4095 }

    private static func map(_ length: Int) -> UInt? {
        let memory = unsafe mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else { return nil }
        unsafe madvise(memory, length, MADV_DONTDUMP)
        // Beyond the limit, memory remains swappable, which is better than no memory.
        unsafe mlock(memory, length)
        return UInt(bitPattern: memory)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The pages of code that only the start needed: argument parsing, YAML, the dynamic linker's tables, static
/// initialisers. They are most of what is resident in an idle daemon.
enum StartUpMemory {
    /// Unmaps the pages of all executable file mappings; what is still needed comes back from the page cache at its
    /// next use. Executable mappings are never written (no text relocations), so nothing can be lost by it; the
    /// others may be, and are left alone.
    static func giveBack() {
        for mapping in mappings() where mapping.isExecutable && mapping.hasFile {
            guard let start = unsafe UnsafeMutableRawPointer(bitPattern: mapping.range.lowerBound) else { continue }
            _ = unsafe madvise(start, mapping.range.count, MADV_DONTNEED)
        }
    }

    private struct Mapping {
        let range: Range<UInt>
        let isExecutable: Bool
        let hasFile: Bool

        /// A line of /proc/self/maps: `start-end rwxp offset device inode path` (proc(5)).
        init?(_ line: Substring) {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            guard words.count >= 5 else { return nil }
            let ends = words[0].split(separator: "-")
            guard ends.count == 2, let start = UInt(ends[0], radix: 16), let end = UInt(ends[1], radix: 16), start < end
            else { return nil }
            range = start..<end
            isExecutable = words[1] == "r-xp"
            hasFile = words[4] != "0"
        }
    }

    private static func mappings() -> [Mapping] {
        guard let file = unsafe fopen("/proc/self/maps", "re") else { return [] }
        defer { unsafe fclose(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, file) }
            guard count > 0, text.count < 4_194_304 else { break }
            text += buffer[..<count]
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n").compactMap { Mapping($0) }
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import Secrets

@Suite("The memory of secrets")
struct SecretMemoryTests {
    /// What the kernel says of the mapping that holds `address`: VmFlags of /proc/self/smaps (proc(5)).
    private func flags(of address: UInt) throws -> [Substring] {
        let file = unsafe try #require(unsafe fopen("/proc/self/smaps", "re"))
        defer { unsafe fclose(file) }
        var isInside = false
        var buffer = [CChar](repeating: 0, count: 8192)
        while unsafe fgets(&buffer, Int32(buffer.count), file) != nil {
            let line = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if line.hasPrefix("VmFlags:"), isInside { return line.split(whereSeparator: \.isWhitespace) }
            let ends = (line.split(separator: " ").first ?? "").split(separator: "-")
            if ends.count == 2, let start = UInt(ends[0], radix: 16), let end = UInt(ends[1], radix: 16) {
                isInside = start <= address && address < end
            }
        }
        return []
    }

    @Test(
        "secrets are excluded from core dumps, and from swap if allowed", arguments: [0, 1, 16, 4096, 4097, 100_000])
    func flags(count: Int) throws {
        let secret = Secret([UInt8](repeating: 7, count: count))
        let address = secret.withBytes { bytes in unsafe bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
        let flags = try flags(of: address)
        #expect(flags.contains("dd"), "\(flags)")
        #expect(secret.count == count)
        // Sanitizers make nothing of mlock(2).
        guard unsafe getenv("COUNTERSIGN_SANITIZER") == nil else { return }
        let limits = unsafe try #require(unsafe fopen("/proc/self/limits", "re"))
        defer { unsafe fclose(limits) }
        var line = [CChar](repeating: 0, count: 256)
        while unsafe fgets(&line, 256, limits) != nil {
            let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(
                separator: " ")
            guard words.starts(with: ["Max", "locked", "memory"]), words.count > 3 else { continue }
            // The tests of a machine that allows next to nothing may be beyond it already.
            if words[3] == "unlimited" || Int(words[3]).map({ $0 >= 8 << 20 }) == true {
                #expect(flags.contains("lo"), "\(flags)")
            }
        }
    }

    @Test("the memory of a released secret is zero when it is allocated again")
    func zeroed() {
        for size in [1, 32, 33, 64, 1000, 4096] {
            for _ in 0..<300 {
                let start = unsafe SecretMemory.allocate(size)
                for index in 0..<size {
                    #expect(unsafe start[index] == 0)
                    unsafe start[index] = 0xAA
                }
                unsafe SecretMemory.release(start, size)
            }
        }
    }

    @Test("the memory of a secret is not allocated twice, even on many threads at once")
    func apart() async {
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    var held: [(secret: Secret, byte: UInt8)] = []
                    for round in 0..<400 {
                        let byte = UInt8(truncatingIfNeeded: task * 31 + round)
                        held.append((Secret([UInt8](repeating: byte, count: 1 + round * 17 % 5000)), byte))
                        if round % 3 == 2 { held.removeFirst(2) }
                    }
                    for (secret, byte) in held {
                        #expect(secret.revealBytes().allSatisfy { $0 == byte })
                    }
                }
            }
        }
    }
}

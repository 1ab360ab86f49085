// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

/// Seeds in one file. `Tests/Fuzz/seedpack.py` describes the format and writes it.
struct SeedPack {
    struct Seed {
        let hash: String
        /// Empty for most seeds: fuzzers grew them.
        let name: String
        let bytes: [UInt8]
    }

    /// Seeds in the order of their bytes.
    private(set) var seeds: [Seed] = []

    /// Reads a pack. Throws for whatever `seedpack.py` would not have written, and in the same words.
    init(_ file: [UInt8]) throws(BadSeedPack) {
        var rest = file[...]
        guard let head = Self.line(&rest), head.count == 2, head[1] == "seeds", let count = Self.number(head[0]) else {
            throw BadSeedPack("does not begin with a line \"N seeds\"")
        }
        while seeds.count < count {
            let seed = "seed \(seeds.count + 1) of \(count)"
            guard let record = Self.line(&rest), (2...3).contains(record.count), Self.isHash(record[0]),
                let length = Self.number(record[1]), record.count == 2 || Self.isName(record[2])
            else { throw BadSeedPack("\(seed) does not begin with a line \"HASH LENGTH NAME\"") }
            let bytes = Array(rest.prefix(length))
            guard bytes.count == length else {
                throw BadSeedPack("\(seed) is cut: \(bytes.count) of \(length) bytes")
            }
            rest = rest.dropFirst(length)
            guard rest.popFirst() == UInt8(ascii: "\n") else {
                throw BadSeedPack("\(seed) has no line feed after its \(length) bytes")
            }
            let hash = Self.hash(bytes)
            guard hash == record[0] else { throw BadSeedPack("\(seed) has the hash \(hash), not \(record[0])") }
            if let last = seeds.last, !last.bytes.lexicographicallyPrecedes(bytes) {
                throw BadSeedPack("\(seed) does not come after seed \(seeds.count) by its bytes")
            }
            seeds.append(Seed(hash: hash, name: record.count == 3 ? record[2] : "", bytes: bytes))
        }
        guard rest.isEmpty else { throw BadSeedPack("\(rest.count) bytes follow the last seed") }
    }

    /// Takes a line of at most 96 bytes. Returns its words, or `nil` if there is no such line.
    private static func line(_ rest: inout ArraySlice<UInt8>) -> [String]? {
        guard let end = rest.prefix(97).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let words = rest[..<end].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        rest = rest[(end + 1)...]
        return words.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns a decimal number of at most nine digits, without leading zeros.
    private static func number(_ text: String) -> Int? {
        guard text.utf8.count <= 9, let number = Int(text), number >= 0, String(number) == text else { return nil }
        return number
    }

    private static func isHash(_ text: String) -> Bool {
        text.utf8.count == 16
            && text.utf8.allSatisfy {
                isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
            }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// FNV-1a of 64 bits, in 16 hexadecimal digits.
    private static func hash(_ bytes: [UInt8]) -> String {
        let digits = String(bytes.span.fnv1a, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// The problem of a pack that cannot be read.
struct BadSeedPack: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The committed seeds, in `Tests/Fuzz/packed`.
enum Seeds {
    struct Seed {
        /// Its number, its hash, and the command that shows it, with its name if it has one.
        let description: String
        let name: String
        let bytes: [UInt8]
    }

    static let folder: String = {
        let parts = #filePath.split(separator: "/").dropLast(2)
        return "/\(parts.joined(separator: "/"))"
    }()

    static func of(_ target: String) throws -> [Seed] {
        let pack = try SeedPack(read("\(folder)/packed/\(target).seeds"))
        return pack.seeds.enumerated().map { index, seed in
            let name = seed.name.isEmpty ? seed.hash : seed.name
            return Seed(
                description: "seed \(index + 1) of packed/\(target).seeds, \(seed.hash)"
                    + " (Tests/Fuzz/pack show \(target) \(name))",
                name: name, bytes: seed.bytes)
        }
    }

    /// Names of a folder's files, in order, without hidden ones.
    static func names(in folder: String) -> [String] {
        guard let directory = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe String(cString: UnsafeRawPointer(pointer).assumingMemoryBound(to: CChar.self))
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    /// The whole content of a file.
    static func read(_ path: String) throws -> [UInt8] {
        let file = unsafe try #require(unsafe fopen(path, "r"), "\(path) cannot be read")
        defer { unsafe fclose(file) }
        return unsafe rest(of: file)
    }

    /// What a stream still has.
    static func rest(of file: UnsafeMutablePointer<FILE>) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = unsafe fread(&part, 1, part.count, file)
            if count == 0 { return bytes }
            bytes += part[..<count]
        }
    }
}

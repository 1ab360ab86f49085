// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

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

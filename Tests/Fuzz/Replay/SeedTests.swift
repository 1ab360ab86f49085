// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

/// What fuzzers were given to begin with, and each input that they found something with, in every run of the tests.
@Suite("Fuzzed seeds")
struct SeedTests {
    @Test("no seed breaks a rule, nor does one cut short or with a byte changed", arguments: FuzzTarget.all)
    func seeds(_ target: FuzzTarget) throws {
        let seeds = try Seeds.of(target.name)
        #expect(seeds.count >= 10)
        for (name, bytes) in seeds {
            #expect(throws: Never.self, "\(name)") { try target.run(bytes.span) }
            var dice = Dice(bytes.span)
            for _ in 0..<8 where !bytes.isEmpty {
                var changed = Array(bytes.prefix(1 + dice.below(bytes.count)))
                changed[dice.below(changed.count)] = UInt8(dice.below(256))
                #expect(throws: Never.self, "\(name), changed to \(changed)") { try target.run(changed.span) }
            }
        }
    }

    @Test("each folder of seeds belongs to a target")
    func folders() {
        #expect(Seeds.names(in: Seeds.folder) == FuzzTarget.all.map(\.name).sorted())
    }
}

/// The files below `Tests/Fuzz/seeds`.
private enum Seeds {
    static var folder: String {
        let parts = #filePath.split(separator: "/").dropLast(2)
        return "/\(parts.joined(separator: "/"))/seeds"
    }

    static func of(_ target: String) throws -> [(name: String, bytes: [UInt8])] {
        try names(in: "\(folder)/\(target)").map { name in
            let file = unsafe try #require(unsafe fopen("\(folder)/\(target)/\(name)", "r"))
            defer { unsafe fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = unsafe fread(&bytes, 1, bytes.count, file)
            return (name, Array(bytes.prefix(count)))
        }
    }

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
}

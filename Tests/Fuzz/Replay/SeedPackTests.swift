// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@Suite("Packs of seeds")
struct SeedPackTests {
    /// Three seeds: an empty one, one with a name, and one with the line feeds and digits of a record in it.
    private static let good = """
        3 seeds
        cbf29ce484222325 0

        c695ca19835483ab 3 cut-json
        {"a
        30ef27f5b76b8b6f 9
        ~
        2 seeds

        """

    /// A pack in which one thing is wrong, and the problem with it.
    private static let bad: [(name: String, text: String, problem: String)] = [
        ("empty", "", "does not begin with a line \"N seeds\""),
        ("no-number", good.changing("3 seeds", to: "x seeds"), "does not begin with a line \"N seeds\""),
        ("zero-led", good.changing("3 seeds", to: "03 seeds"), "does not begin with a line \"N seeds\""),
        (
            "more", good.changing("3 seeds", to: "4 seeds"),
            "seed 4 of 4 does not begin with a line \"HASH LENGTH NAME\""
        ),
        ("less", good.changing("3 seeds", to: "2 seeds"), "29 bytes follow the last seed"),
        ("appended", good + "x", "1 bytes follow the last seed"),
        ("longer", good.changing(" 9\n", to: " 99\n"), "seed 3 of 3 is cut: 10 of 99 bytes"),
        (
            "huge", good.changing(" 9\n", to: " 9999999999\n"),
            "seed 3 of 3 does not begin with a line \"HASH LENGTH NAME\""
        ),
        ("shorter", good.changing(" 9\n", to: " 8\n"), "seed 3 of 3 has no line feed after its 8 bytes"),
        ("negative", good.changing(" 9\n", to: " -9\n"), "seed 3 of 3 does not begin with a line \"HASH LENGTH NAME\""),
        (
            "capital", good.changing("cut-json", to: "Cut"),
            "seed 2 of 3 does not begin with a line \"HASH LENGTH NAME\""
        ),
        (
            "nameless", good.changing(" cut-json", to: " "),
            "seed 2 of 3 does not begin with a line \"HASH LENGTH NAME\""
        ),
        (
            "byte", good.changing("{\"a", to: "{\"b"),
            "seed 2 of 3 has the hash c695cb198354855e, not c695ca19835483ab"
        ),
        (
            "twice", good.changing("cbf29ce484222325 0\n", to: "c695ca19835483ab 3\n{\"a"),
            "seed 2 of 3 does not come after seed 1 by its bytes"
        ),
    ]

    @Test("a pack is read: an empty seed, one with a name, and one that looks like a pack")
    func reads() throws {
        let seeds = try SeedPack(Array(Self.good.utf8)).seeds
        #expect(seeds.map(\.bytes) == ["", "{\"a", "~\n2 seeds"].map { Array($0.utf8) })
        #expect(seeds.map(\.name) == ["", "cut-json", ""])
    }

    @Test("a bad pack is refused, by the number of its first bad seed", arguments: bad.indices)
    func refuses(_ index: Int) {
        let (_, text, problem) = Self.bad[index]
        let error = #expect(throws: BadSeedPack.self) { try SeedPack(Array(text.utf8)) }
        #expect(error?.description == problem)
    }

    @Test("a pack that is cut anywhere is refused")
    func cut() {
        let bytes = Array(Self.good.utf8)
        for count in bytes.indices {
            #expect(throws: BadSeedPack.self, "\(count) bytes") { try SeedPack(Array(bytes[..<count])) }
        }
    }

    @Test("the command refuses the same packs in the same words, and reads the good one")
    func command() throws {
        let folder = try Scratch()
        var command = "check"
        for (name, text, _) in Self.bad { command += try " '\(folder.write(text, to: name))'" }
        command += try " '\(folder.write(Self.good, to: "good"))'"
        let (output, status) = try pack(command)
        let expected = Self.bad.map { "\($0.name): \($0.problem)\n" }.joined() + "good: 3 seeds\n"
        #expect(output == expected)
        #expect(status == 1)
    }

    @Test("the command adds what is not a seed yet, names seeds, and writes what this test reads")
    func adds() throws {
        let folder = try Scratch()
        try folder.makeFolders(["packed", "found"])
        let named = try folder.write("named", to: "named")
        let other = try folder.write("other", to: "other")
        _ = try folder.write("0 seeds\n", to: "packed/values.seeds")
        for (name, text) in [("1", "b"), ("2", ""), ("3", "named"), ("4", "a\n")] {
            _ = try folder.write(text, to: "found/\(name)")
        }
        let here = "--folder '\(folder.path)'"
        #expect(
            try pack("\(here) add values '\(folder.path)/found'").output == "values: 4 seeds added, 4 in the pack\n")
        #expect(
            try pack("\(here) add values '\(folder.path)/found'").output == "values: 0 seeds added, 4 in the pack\n")
        #expect(try pack("\(here) add values '\(named)' --name a-word").status == 0)
        #expect(try pack("\(here) add values '\(other)' --name other-word").status == 0)
        let refused = try pack("\(here) add values '\(other)' --name a-word")
        #expect(refused.output == "another seed in the pack of values is called a-word\n")
        #expect(refused.status == 1)
        let seeds = try SeedPack(Seeds.read("\(folder.path)/packed/values.seeds")).seeds
        #expect(seeds.map(\.bytes) == ["", "a\n", "b", "named", "other"].map { Array($0.utf8) })
        #expect(seeds.map(\.name) == ["", "", "", "a-word", "other-word"])
        #expect(try pack("\(here) show values a-word").output == "named")
    }

    /// Runs `Tests/Fuzz/pack`.
    private func pack(_ arguments: String) throws -> (output: String, status: Int32) {
        let stream = unsafe try #require(unsafe popen("'\(Seeds.folder)/pack' \(arguments) 2>&1", "r"))
        let output = unsafe Seeds.rest(of: stream)
        let status = unsafe pclose(stream)
        return (String(decoding: output, as: UTF8.self), (status >> 8) & 0xFF)
    }
}

/// A folder that is removed afterwards.
private struct Scratch: ~Copyable {
    let path: String

    init() throws {
        var template = Array("/tmp/seedpacks-XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { unsafe system("rm -rf '\(path)'") }

    func makeFolders(_ names: [String]) throws {
        for name in names { try #require(unsafe mkdir("\(path)/\(name)", 0o700) == 0) }
    }

    /// Writes a file and returns its path.
    func write(_ text: String, to name: String) throws -> String {
        let file = unsafe try #require(unsafe fopen("\(path)/\(name)", "w"))
        defer { unsafe fclose(file) }
        _ = unsafe fputs(text, file)
        return "\(path)/\(name)"
    }
}

extension String {
    /// The text with the one place where `part` stands changed.
    fileprivate func changing(_ part: String, to other: String) -> String {
        let parts = split(separator: part, omittingEmptySubsequences: false)
        return parts.joined(separator: other)
    }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Testing

@testable import Credentials

@Suite("Environment source")
struct EnvironmentSourceTests {
    private func fields(_ name: String, _ environment: [String: String]) throws -> [String: Secret]? {
        try EnvironmentSource(environment: environment).credential(named: name)?.fields
    }

    @Test("an environment variable holds the credential and field that its upper-case name states")
    func pin() throws {
        #expect(try fields("bank-pin", ["COUNTERSIGN_BANK_PIN__PIN": "1234"]) == ["pin": Secret("1234")])
        #expect(try fields("bank-pin", ["COUNTERSIGN_OTHER__PIN": "1234"]) == nil)
        #expect(try fields("bank-pin", ["BANK_PIN__PIN": "1234"]) == nil)
    }

    @Test("an environment variable names a field of several words with hyphens and with underscores")
    func severalWords() throws {
        let found = try fields("api.v2", ["COUNTERSIGN_API_V2__CLIENT_ID": "a", "COUNTERSIGN_API_V2__KEY": "b"])
        #expect(found == ["client-id": Secret("a"), "client_id": Secret("a"), "key": Secret("b")])
    }

    @Test("an environment variable belongs to one credential only")
    func oneName() throws {
        let environment = ["COUNTERSIGN_A__B__PIN": "1", "COUNTERSIGN_A___PIN": "2"]
        #expect(try fields("a", environment) == nil)
        #expect(try fields("a--b", environment) == ["pin": Secret("1")])
        #expect(try fields("a-", environment) == ["pin": Secret("2")])
    }

    @Test("environment variables have an underscore for each character but ASCII letters and digits")
    func signs() throws {
        #expect(try fields("größe:1", ["COUNTERSIGN_GR__E_1__PIN": "1"]) == ["pin": Secret("1")])
    }

    @Test("an empty environment variable counts as unset, and a value is used unchanged")
    func values() throws {
        #expect(try fields("a", ["COUNTERSIGN_A__PIN": ""]) == nil)
        #expect(try fields("a", ["COUNTERSIGN_A__PIN": " 1\n"]) == ["pin": Secret(" 1\n")])
    }
}

@Suite("Environment files")
struct EnvironmentFileTests {
    private func variables(_ text: String) throws -> [String: String] {
        try EnvironmentFile.variables(in: Secret(text)).mapValues { $0.revealText() }
    }

    @Test(
        "an environment file is parsed as by systemd (systemd.exec(5))",
        arguments: [
            ("A=1\nB=2\n", ["A": "1", "B": "2"]),
            ("A=1\r\nB=2", ["A": "1", "B": "2"]),
            ("# A=1\n ; B=2\n\nC=3 # no comment", ["C": "3 # no comment"]),
            ("  A  =  one two  \n", ["A": "one two"]),
            ("A='a b '\nB=\"c \\\"d\\\" \\$e \\n\"\n", ["A": "a b ", "B": "c \"d\" $e \\n"]),
            ("A=a\\\nb\nB=\"c\\\nd\"\nC='e\nf'\n", ["A": "ab", "B": "cd", "C": "e\nf"]),
            ("A=it\\'s \\\\ \\x\n", ["A": "it's \\ x"]),
            ("A=x\"y\"\nB=''\nC=\"a\"'b'c\n", ["A": "x\"y\"", "B": "", "C": "abc"]),
            ("A=1\nA=2\nno sign\n=none\nB=p=q\n", ["A": "2", "B": "p=q"]),
        ])
    func read(text: String, expected: [String: String]) throws {
        #expect(try variables(text) == expected)
    }

    @Test("an environment file with an unterminated quote is refused, with the line of the quote")
    func unfinished() {
        for text in ["A=1\nB=\"2\nC=3\n", "\nA='", "A=1\nB=\"\\"] {
            #expect(throws: EnvironmentFile.Fault.self) { try EnvironmentFile.variables(in: Secret(text)) }
        }
        #expect(throws: EnvironmentFile.Fault(line: 2, reason: "unterminated quote")) {
            try EnvironmentFile.variables(in: Secret("A=1\nB=\"2\nC=3\n"))
        }
    }

    @Test("an environment file names credentials as the environment does, and is read again after a change")
    func credentials() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("COUNTERSIGN_BANK_PIN__PIN=1234\nPATH=/bin\n", to: "secrets.env")
        let source = EnvironmentFileSource(path: path)
        #expect(try source.credential(named: "bank-pin")?["pin"]?.revealText() == "1234")
        #expect(try source.credential(named: "other") == nil)
        #expect(try source.open() == 1)
        let before = source.files
        try directory.write("COUNTERSIGN_BANK_PIN__PIN='56 78'\n", to: "secrets.env")
        #expect(source.files != before)
        #expect(try source.credential(named: "bank-pin")?["pin"]?.revealText() == "56 78")
    }

    @Test("an exposed, missing or malformed environment file is reported without its content")
    func unusable() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("COUNTERSIGN_BANK_PIN__PIN=\"1234\n", to: "secrets.env")
        func reason() -> String {
            do {
                _ = try EnvironmentFileSource(path: path).credential(named: "bank-pin")
                return ""
            } catch {
                return error.reason
            }
        }
        #expect(reason() == "\(path):1: unterminated quote")
        #expect(unsafe chmod(path, 0o644) == 0)
        #expect(reason().contains("run: chmod 600 \(path)"))
        #expect(unsafe unlink(path) == 0)
        #expect(reason().contains(path))
    }
}

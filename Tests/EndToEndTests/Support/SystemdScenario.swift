// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// A scenario under a real systemd, with the shipped units and the demonstration's upstream at port 8081.
struct SystemdScenario {
    /// The contents of `/etc/countersign/countersign.yaml`.
    var configuration = Self.bank
    /// Further files: their contents by path.
    var files: [String: String] = ["/etc/countersign/secrets/bank-pin.pin": "1234"]
    /// A package that is copied to that path; without one, program and units are put in place as they are.
    var package: (file: DebianPackage, path: String)?
    /// The drop-in of countersign.service and countersign@.service.
    var dropIn: String? = """
        [Service]
        LoadCredential=bank-pin.pin:/etc/countersign/secrets/bank-pin.pin

        """
    /// The time limit, in seconds.
    var limit = 100

    /// Runs `Tests/Scenarios/systemd/NAME.sh`, which must end with `step end`. If this machine allows no such namespaces the test is
    /// cancelled.
    func run(_ name: String, _ parameters: [String] = []) async throws {
        let folder = try Folder()
        var arguments = ["--config", folder.write(configuration, to: "configuration", mode: 0o644)]
        var number = 0
        func add(_ text: String, _ path: String) {
            number += 1
            arguments += ["--file", "\(folder.write(text, to: "file\(number)", mode: 0o644)):\(path)"]
        }
        for (path, text) in files.sorted(by: { $0.key < $1.key }) { add(text, path) }
        if let dropIn {
            for unit in ["countersign.service", "countersign@.service"] {
                add(dropIn, "/etc/systemd/system/\(unit).d/test.conf")
            }
        }
        arguments += ["--file", "\(Repository.path(of: "Tests/Scripts/steady-callers")):/usr/local/bin/steady-callers"]
        // The demonstration is the upstream, with or without a package.
        arguments += ["--file", "\(Binary.path):/opt/demo/countersign"]
        if let package {
            arguments += ["--file", "\(package.file.path):\(package.path)"]
        } else {
            arguments += ["--binary", Binary.path]
            for unit in ["countersign.service", "countersign.socket", "countersign@.service", "countersign@.socket"] {
                arguments += ["--unit", Repository.path(of: "systemd/\(unit)")]
            }
        }
        let place = "/usr/local/lib/scenario"
        for script in [name, "prelude"] {
            let path = Repository.path(of: "Tests/Scenarios/systemd/\(script).sh")
            arguments += ["--file", "\(path):\(place)/\(script).sh"]
        }
        arguments += ["--timeout", "\(limit)", "--", "bash", "\(place)/\(name).sh"] + parameters
        let run = try await Slots.run {
            try await Repository.script("systemd-namespace", arguments, in: folder)
        }
        if run.exit == 77 { try Test.cancel("\(run.errors)") }
        #expect(run.exit == 0, "\(run.output)\(run.errors)")
        #expect(run.output.hasSuffix("step: end\n"))
    }

    /// A listener on the socket of countersign.socket before the bank of the demonstration.
    static let bank = bank(listener: "systemd:countersign")

    /// Returns the configuration of the bank with another listener.
    static func bank(listener: String) -> String {
        """
        listeners:
          - address: \(listener)
            upstream: bank
            routes: [{ path: /open/, upstream: server }]
        upstreams:
          bank:
            url: http://127.0.0.1:8081/mfp/api/adapters/bank/
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
          server:
            url: http://127.0.0.1:8081/
        credentials: { sources: [systemd] }
        challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }

        """
    }
}

/// The Debian package of the program under test.
struct DebianPackage: Sendable {
    /// Its file.
    let path: String
    private let folder: Folder

    /// Makes one, quickly instead of small.
    ///
    /// - Parameter version: in place of the program's own.
    init(version: String? = nil) async throws {
        folder = try Folder()
        var environment = [
            "BINARY": Binary.path, "OUTPUT": folder.path(of: "packages"), "DPKG_DEB_COMPRESSOR_TYPE": "gzip",
            "DPKG_DEB_COMPRESSOR_LEVEL": "1",
        ]
        environment["VERSION"] = version
        let made = try await Repository.script("deb", environment: environment, in: folder)
        guard made.exit == 0 else { throw ChildError(description: "no package: \(made.output)\(made.errors)") }
        path = made.output.split(separator: "\n").last.map(String.init) ?? ""
    }

    /// Returns the output of `dpkg-deb` about the package.
    func ask(_ arguments: String...) async throws -> String {
        try await Command.run(["dpkg-deb"] + arguments + [path], in: folder).output
    }

    /// Returns its files and folders, unpacked.
    func unpacked() async throws -> Folder {
        let root = try Folder()
        _ = try await Command.run(["dpkg-deb", "--raw-extract", path, root.path(of: "package")], in: folder)
        return root
    }
}

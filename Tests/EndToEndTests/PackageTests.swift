// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Glibc
import Testing

@Suite("Installing")
struct PackageTests {
    @Test("the Debian package holds all that belongs to the program, and lintian finds no fault with it")
    func package() async throws {
        try await Slots.run {
            let package = try await DebianPackage()
            let files = try await package.ask("--contents").split(separator: "\n").compactMap { line in
                line.split(separator: " ").last.map { String($0.dropFirst()) }
            }
            for file in Self.files { #expect(files.contains(file), "\(file)") }
            let fields = try await package.ask("--field")
            #expect(fields.contains("\nVersion: 0.1.0~dev-0upstream1\n"), "\(fields)")
            #expect(fields.contains("libcurl4 (>= 7.88.0)"), "\(fields)")
            #expect(fields.contains("libsystemd0 (>= "), "\(fields)")

            let folder = try await package.unpacked()
            let root = folder.path(of: "package")
            #expect(readFile("\(root)/DEBIAN/conffiles").isEmpty, "an upgrade would ask about it")
            try await expectCompletions(below: "\(root)/usr/share", in: folder)
            expectLinks(below: "\(root)/usr/share/doc/countersign", in: folder)
            let readme = String(decoding: readFile("\(root)/usr/share/doc/countersign/README.md"), as: UTF8.self)
            #expect(!readme.contains("make ") && readme.contains("cp /usr/share/doc/countersign/examples/minimal.yaml"))
            #expect(!files.contains("/usr/share/doc/countersign/CONTRIBUTING.md"))

            // A debug binary looks for Swift's libraries in the toolchain's folder.
            let judged = try await Command.run(
                [
                    "lintian", "--fail-on", "warning,error", "--suppress-tags", "custom-library-search-path",
                    package.path,
                ],
                in: folder)
            #expect(judged.exit == 0, "\(judged.output)\(judged.errors)")
        }
    }

    /// Expects that the target of each link in a page exists.
    private func expectLinks(below documents: String, in folder: Folder) {
        let pages = folder.files.filter { $0.hasPrefix(documents) && $0.hasSuffix(".md") }
        #expect(pages.count > 20)
        for page in pages {
            let place = page.split(separator: "/").dropLast().joined(separator: "/")
            for link in String(decoding: readFile(page), as: UTF8.self).matches(of: /\]\(([^)#:\s]+)(#[^)]*)?\)/) {
                unsafe #expect(access("/\(place)/\(link.1)", F_OK) == 0, "\(page) links to \(link.1)")
            }
        }
    }

    /// Expects that each shell loads its completions; fish, which can be asked, completes by them.
    private func expectCompletions(below share: String, in folder: Folder) async throws {
        let bash = "source \(share)/bash-completion/completions/countersign && complete -p countersign"
        #expect(try await Command.run(["bash", "-c", bash], in: folder).exit == 0)
        let zsh = "fpath=(\(share)/zsh/vendor-completions $fpath); autoload -U compinit; compinit -D -u; "
        let known = try await Command.run(
            ["zsh", "-f", "-c", "\(zsh) autoload +X _countersign && echo $_comps[countersign]"], in: folder)
        #expect(known.output == "_countersign\n", "\(known)")
        let fish = "source \(share)/fish/vendor_completions.d/countersign.fish; complete -C 'countersign sess'"
        let completed = try await Command.run(["fish", "--no-config", "-c", fish], in: folder)
        #expect(completed.output.hasPrefix("sessions\t"), "\(completed)")
    }

    private static let files =
        [
            "bin/countersign", "lib/systemd/system/countersign.service", "lib/systemd/system/countersign.socket",
            "share/man/man1/countersign.1.gz", "share/man/man5/countersign.yaml.5.gz",
            "share/bash-completion/completions/countersign", "share/zsh/vendor-completions/_countersign",
            "share/fish/vendor_completions.d/countersign.fish", "share/doc/countersign/copyright",
            "share/doc/countersign/changelog.gz", "share/doc/countersign/examples/minimal.yaml",
            "share/doc/countersign/docs/getting-started.md", "share/doc/countersign/docs/challenges/gateways.md",
        ].map { "/usr/\($0)" } + ["/etc/countersign/"]

    @Test("uninstall removes all that install put there, below any prefix")
    func uninstall() async throws {
        try await Slots.run {
            let folder = try Folder()
            for prefix in ["/usr/local", "/opt/bank"] {
                let root = folder.path(of: "root")
                let environment = ["BINARY": Binary.path, "DESTDIR": root, "PREFIX": prefix]
                let installed = try await Repository.script("install", environment: environment, in: folder)
                #expect(installed.exit == 0, "\(installed.errors)")
                let program = "\(root)\(prefix)/bin/countersign"
                #expect(try await Command.run([program, "--version"], in: folder).output == "0.1.0-dev\n")
                let units = prefix == "/usr/local" ? "\(prefix)/lib/systemd" : "/etc/systemd"
                let unit = String(decoding: readFile("\(root)\(units)/system/countersign.service"), as: UTF8.self)
                #expect(unit.contains("ExecStart=\(prefix)/bin/countersign serve"))
                let removed = try await Repository.script("uninstall", environment: environment, in: folder)
                #expect(removed.exit == 0, "\(removed.errors)")
                let rest = folder.files.filter { $0.hasPrefix(root) }
                #expect(rest == [])
            }
        }
    }

    @Test("install and uninstall keep a configuration that is there")
    func keepsConfiguration() async throws {
        let folder = try Folder()
        for name in ["root", "root/etc", "root/etc/countersign"] { folder.makeFolder(name) }
        folder.write("mine", to: "root/etc/countersign/countersign.yaml")
        let environment = ["BINARY": Binary.path, "DESTDIR": folder.path(of: "root")]
        let installed = try await Repository.script("install", environment: environment, in: folder)
        #expect(installed.exit == 0, "\(installed.errors)")
        let removed = try await Repository.script("uninstall", environment: environment, in: folder)
        #expect(removed.exit == 0, "\(removed.errors)")
        #expect(folder.text(of: "root/etc/countersign/countersign.yaml") == "mine")
    }

    @Test("the version is that of git's tags, or else of the changelog")
    func version() async throws {
        let folder = try Folder()
        for name in ["Tests", "Tests/Scripts"] { folder.makeFolder(name) }
        folder.write(Repository.text(of: "Tests/Scripts/version"), to: "Tests/Scripts/version", mode: 0o700)
        folder.write("# Changelog\n\n## [1.3.0] - unreleased\n\n## [1.2.2] - 2026-01-01\n", to: "CHANGELOG.md")
        func version() async throws -> String {
            try await Command.run([folder.path(of: "Tests/Scripts/version")], in: folder).output
        }
        func git(_ arguments: String...) async throws {
            let identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
            let run = try await Command.run(["git", "-C", folder.path] + identity + arguments, in: folder)
            #expect(run.exit == 0, "\(run.errors)")
        }
        #expect(try await version() == "1.3.0-dev\n")
        try await git("init", "-q")
        try await git("add", "CHANGELOG.md")
        try await git("commit", "-q", "-m", "one")
        #expect(try await version().contains(/^1\.3\.0-dev\.[0-9]{12}\+[0-9a-f]{7}\n$/))
        try await git("tag", "v1.2.3")
        #expect(try await version() == "1.2.3\n")
        try await git("commit", "-q", "--allow-empty", "-m", "two")
        #expect(try await version().contains(/^1\.2\.3\+1\.g[0-9a-f]{7}\n$/))
        folder.write("## [1.2.3] - 2026-02-01\n", to: "CHANGELOG.md")
        #expect(try await version().contains(/^1\.2\.3\+1\.g[0-9a-f]{7}\.dirty\n$/))
        remove(folder.path(of: ".git"))
        #expect(try await version() == "1.2.3\n")
    }

    @Test("a build by hand has the version of the changelog's topmost section")
    func versionByHand() async throws {
        let heading = try #require(
            Repository.text(of: "CHANGELOG.md").split(separator: "\n").first { $0.hasPrefix("## [") })
        let number = try #require(heading.split(separator: "]").first?.dropFirst(4))
        let suffix = heading.contains("unreleased") ? "-dev" : ""
        let run = try await Command.countersign("--version", in: try Folder())
        #expect(run.output == "\(number)\(suffix)\n")
    }
}

/// The Debian package on a machine of its own, under a real systemd.
@Suite("The installed package")
struct PackageLifeTests {
    @Test(
        "starts nothing by itself, serves system, instances and users, is upgraded in traffic, and leaves nothing running"
    )
    func life() async throws {
        var scenario = SystemdScenario()
        scenario.package = (try await DebianPackage(), "/srv/countersign.deb")
        // Everything is given as an administrator would, after the installation.
        scenario.configuration = ""
        scenario.dropIn = nil
        scenario.files = [
            "/srv/bank.yaml": SystemdScenario.bank,
            "/home/ann/.config/systemd/user/countersign.service.d/pin.conf":
                "[Service]\nEnvironment=COUNTERSIGN_BANK_PIN__PIN=1234\n",
        ]
        try await scenario.run("package")
    }

    @Test("is upgraded from the version before, and taken back, without a question and without a loss")
    func upgrade() async throws {
        var scenario = SystemdScenario()
        scenario.package = (try await DebianPackage(), "/srv/countersign.deb")
        scenario.configuration = ""
        scenario.dropIn = nil
        scenario.files = ["/srv/bank.yaml": SystemdScenario.bank]
        try await scenario.run("upgrade")
    }
}

/// The root of the container image, and the commands of the Kubernetes manifests in it.
@Suite("In a container")
struct ContainerTests {
    private static let manifests = ["sidecar.yaml", "daemonset.yaml"]

    private func manifest(_ name: String) -> String { Repository.text(of: "config/kubernetes/\(name)") }

    /// Returns the file in a manifest's ConfigMap: the indented lines after `countersign.yaml: |`.
    private func configuration(in manifest: String) -> String {
        let lines = manifest.split(separator: "\n", omittingEmptySubsequences: false)
            .drop { $0 != "  countersign.yaml: |" }.dropFirst().prefix { $0.hasPrefix("    ") }
        return lines.map { $0.dropFirst(4) + "\n" }.joined()
    }

    @Test(
        "the image serves: read-only, as nobody in particular, with a Secret as its credentials, and its probes tell the truth"
    )
    func serves() async throws {
        var bank = BankConfiguration()
        bank.sources = ["systemd"]
        bank.environment = [:]
        try await withBank(bank, startsDaemon: false) { bank in
            let folder = bank.folder
            let root = folder.path(of: "root")
            let assembled = try await Command.run(
                [Repository.path(of: "config/container/assemble"), Binary.path, root], in: folder
            )
            #expect(assembled.exit == 0, "\(assembled)")
            folder.makeFolder("config")
            folder.makeFolder("secrets")
            folder.write("1234", to: "secrets/bank-pin.pin")
            let text = configuration(in: manifest("sidecar.yaml"))
                .replacing("127.0.0.1:8080", with: "127.0.0.1:\(bank.port)")
                .replacing("https://mfp.bank.example", with: "http://127.0.0.1:\(bank.upstream.port)")
            folder.write(text, to: "config/countersign.yaml")
            let script = Repository.path(of: "Tests/Scripts/container-root")
            let daemon = try await Child.start(
                Child.Start(
                    arguments: [script, root, folder.path(of: "config"), folder.path(of: "secrets")],
                    environment: baseEnvironment(folder), folder: folder.path, output: folder.path(of: "out"),
                    errors: folder.path(of: "log")))
            defer { daemon.signal(SIGKILL) }
            #expect(
                await eventually { daemon.exitCode != nil || folder.text(of: "log").contains("ready") })
            if daemon.exitCode == 77 { try Test.cancel("\(folder.text(of: "log"))") }
            #expect(daemon.exitCode == nil, "\(folder.text(of: "log"))")
            try await bank.expect("/balance", status: 200)
            #expect(bank.pinAnswers == 1)

            let probes = probes(in: manifest("sidecar.yaml"))
            #expect(
                Set(probes) == [["/usr/bin/countersign", "status"], ["/usr/bin/countersign", "status", "--live"]])
            for probe in probes {
                let answer = try await Command.run([script, "--beside", "\(daemon.pid)"] + probe, in: folder)
                #expect(answer.exit == 0, "\(probe): \(answer)")
            }
            let shell = try await Command.run([script, "--beside", "\(daemon.pid)", "/bin/sh"], in: folder)
            #expect(shell.exit != 0 && shell.errors.contains("No such file"), "\(shell)")
            daemon.signal(SIGTERM)
            #expect(await daemon.waitForExit() == 0)
        }
    }

    @Test("what the manifests configure is right, and their volumes are where the image looks")
    func manifests() async throws {
        let containerfile = Repository.text(of: "config/container/Containerfile")
        for name in Self.manifests {
            let folder = try Folder()
            let text = manifest(name)
            folder.write(configuration(in: text), to: "countersign.yaml")
            folder.makeFolder("secrets")
            folder.write("1234", to: "secrets/bank-pin.pin")
            folder.write(String(repeating: "a", count: 44), to: "secrets/shared.key")
            let check = try await Command.countersign(
                "check", "--config", folder.path(of: "countersign.yaml"),
                environment: ["CREDENTIALS_DIRECTORY": folder.path(of: "secrets")], in: folder)
            #expect(check.exit == 0, "\(name): \(check)")
            #expect(text.contains("readOnlyRootFilesystem: true") && text.contains("runAsUser: 65532"))
            for (variable, volume) in [
                ("STATE_DIRECTORY", "state"), ("RUNTIME_DIRECTORY", "runtime"),
                ("CREDENTIALS_DIRECTORY", "credentials"),
            ] {
                let path = try #require(containerfile.firstMatch(of: try Regex("\(variable)=(\\S+)"))?[1].substring)
                let mounts = text.matches(of: try Regex("\\{ name: \(volume), mountPath: ([^, ]+)"))
                #expect(mounts.contains { path.hasPrefix($0[1].substring ?? "?") }, "\(name): \(volume)")
            }
            let pods = try await Repository.script(
                "pod-volumes", [Repository.path(of: "config/kubernetes/\(name)")], in: folder)
            #expect(pods.exit == 0 && pods.output.contains("1 pod"), "\(pods)")
        }
    }

    /// Returns the commands of a manifest's probes.
    private func probes(in manifest: String) -> [[String]] {
        manifest.matches(of: /exec: \{ command: \[([^\]]*)\] \}/).map { match in
            match.1.split(separator: ",").map { $0.trimmingPrefix(" ") }.map(String.init)
        }
    }
}
